"""`Streams`: the streams of a run by emloop's names, and the hooks that name one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hookloop.dialects import (
    Adapter,
    internals_of,
)
from hookloop.errors import HookError, nearest
from hookloop_dialects.emloop.cycle import TRAIN, VALID, stream_name

if TYPE_CHECKING:
    from hookloop import Run

_OURS = "val"
_NAMED_BY = ("_stream", "_stream_name", "_streams")
"""The attributes in which emloop's own hooks keep the streams that they were given."""


class Streams:
    """The streams that an epoch of emloop may read.

    Args:
        run: The run.
        is_test: Whether the epoch is a test, which reads the test data alone.

    Attributes:
        prefixes: The prefix of a stream's metrics in the metric store, by emloop's name.
        aliases: Further names: the only validation stream is ``valid`` and ``val``, whatever it is
            called.
    """

    def __init__(self, run: Run, *, is_test: bool = False) -> None:
        phase, data = ("test", internals_of(run).test_data) if is_test else ("val", run.val_data)
        default = phase if is_test else VALID
        # Of a stream that is named after its phase, hooks leave out the name.
        self.prefixes = {
            stream_name(name, default): phase if name in ("", phase) else f"{phase}/{name}"
            for name in data
        }
        evaluated = [name for name in self.prefixes if name != TRAIN]
        # In the zeroth epoch the training data is one of the validation streams.
        if not is_test:
            self.prefixes.setdefault(TRAIN, TRAIN)
        only = evaluated[0] if len(evaluated) == 1 and not is_test else VALID
        self.aliases = {
            name: only
            for name in (VALID, _OURS)
            if name not in self.prefixes and only in self.prefixes
        }

    def settle(self, adapters: Iterable[Adapter], tested: Iterable[str]) -> None:
        """Translate the names that emloop's own hooks were given; reject what does not exist.

        Args:
            adapters: The hooks.
            tested: Streams of the test data, which training does not read.
        """
        for adapter in adapters:
            if not _is_of_emloop(adapter.foreign):
                continue
            for attribute in _NAMED_BY:
                named = getattr(adapter.foreign, attribute, None)
                if isinstance(named, str):
                    setattr(adapter.foreign, attribute, self._settled(adapter, named, ()))
                elif isinstance(named, list | tuple) and all(isinstance(x, str) for x in named):
                    # A hook that looks at batches does so in a test, too.
                    settled = [self._settled(adapter, name, tested) for name in named]
                    setattr(adapter.foreign, attribute, settled)

    def _settled(self, adapter: Adapter, name: str, tested: Iterable[str]) -> str:
        if name in self.prefixes or name in tested:
            return name
        if name in self.aliases:
            return self.aliases[name]
        listed = ", ".join(self.prefixes)
        raise HookError(
            f"The hook '{adapter.name}' names the stream '{name}', which this training does not "
            f"have.{nearest(name, self.prefixes)} There are: {listed}. A stream that is evaluated "
            f"in training is one of val_data: {{{name}: ...}}.",
            adapter.name,
        )


def check_streams(run: Run) -> None:
    """Settle the streams that emloop's own hooks of a training name."""
    adapters = [hook for hook in run.hooks if isinstance(hook, Adapter)]
    Streams(run).settle(adapters, Streams(run, is_test=True).prefixes)


def _is_of_emloop(foreign: object) -> bool:
    """Return whether a hook is one of emloop's own, ours or those of the real package."""
    module = f"{type(foreign).__module__}."
    return module.startswith((f"{__package__}.", "emloop."))
