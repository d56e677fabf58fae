"""`Flatten`: add flat copies of nested variables to a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.hooks.accumulate_variables import variable


class Flatten(AbstractHook):
    """Add flat lists of nested variables to each batch, for the hooks after this one.

    Args:
        variables: The name of the flat list for each nested variable.
        streams: The streams; None for all.
        kwargs: See `AbstractHook`.
    """

    def __init__(
        self, variables: Mapping[str, str], streams: Iterable[str] | None = None, **kwargs: object
    ) -> None:
        super().__init__(**kwargs)
        assert variables, "Flatten needs at least one variable"
        self._variables = variables
        self._streams = streams

    def after_batch(self, stream_name: str, batch_data: MutableMapping[str, Any]) -> None:
        if self._streams is None or stream_name in self._streams:
            for name, flat in self._variables.items():
                batch_data[flat] = list(_leaves(variable(batch_data, name, stream_name)))


def _leaves(value: Any) -> Iterator[object]:  # noqa: ANN401 - the user's own
    # A text is iterable, and so is each of its characters: without the first test this never ends.
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        yield value
    else:
        for inner in value:
            yield from _leaves(inner)
