"""YAML for configs: plain values only, and ``1e-3`` is a number.

PyYAML follows YAML 1.1, in which a float needs a point: ``1e-3`` would be read as text, and the
text ``1e-3`` would be written without quotes. Reading and writing share one rule here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import yaml

from hookloop.secret import redact

FLOAT = re.compile(
    r"""^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
    |[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+
    |[-+]?\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?
    |[-+]?\.(?:inf|Inf|INF)
    |\.(?:nan|NaN|NAN))$""",
    re.VERBOSE,
)
FLOAT_STARTS = list("-+0123456789.")

DEEPEST = 100
"""How many levels of a text are read."""


class PlainDumper(yaml.SafeDumper):
    """Writes dicts, lists and scalars without anchors; any other object as its text."""

    def ignore_aliases(self, data: object) -> bool:
        """Write a repeated value in full each time: anchors are hard to read and to edit."""
        return True


def dump(value: Mapping[str, object]) -> str:
    """Return ``value`` as YAML text.

    >>> print(dump({"lr": 1e-3, "tag": "1e-3", "sizes": (8, 16)}), end="")
    lr: 0.001
    tag: '1e-3'
    sizes:
    - 8
    - 16
    """
    text: str = yaml.dump(
        dict(value), Dumper=PlainDumper, sort_keys=False, allow_unicode=True, width=100
    )
    return text


# libyaml's parser is many times faster, which counts when the configs of all runs are read.
class PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads dicts, lists and scalars; any tag but the plain ones is an error.

    So is a text that is nested deeply: libyaml calls itself for each level, until the process ends
    without a word.
    """

    _depth = 0

    def descend_resolver(self, current_node: object, current_index: object) -> None:
        """Count the levels; it is called before each node."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {DEEPEST} levels deep")

    def ascend_resolver(self) -> None:
        """Count the levels; it is called after each node."""
        self._depth -= 1


def load(text: str | bytes) -> object:
    """Return what a text holds; the opposite of `dump`.

    Anchors are rejected: `dump` writes none, and a few lines of them can stand for gigabytes.

    Raises:
        ValueError: If it is not plain YAML.

    >>> load("lr: 1e-3")
    {'lr': 0.001}
    """
    try:
        if has_anchors(text):
            raise ValueError("it has anchors")
        loader = PlainLoader(text)
        try:
            value: object = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"it is not plain YAML: {error}") from error
    return value


def key_lines(text: str) -> dict[str, int]:
    r"""Return the line of each key of a config; {} for a text that is not plain YAML.

    >>> key_lines("seed: 1\noptimizer:\n  lr: 0.1")
    {'seed': 1, 'optimizer': 2, 'optimizer.lr': 3}
    """
    try:
        loader = PlainLoader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return dict(_lines_below(node, "")) if node is not None else {}


def _lines_below(node: yaml.Node, path: str) -> Iterator[tuple[str, int]]:
    items: list[tuple[str, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        items = [(str(key.value), value) for key, value in node.value]
        yield from (
            (f"{path}.{key.value}" if path else str(key.value), key.start_mark.line + 1)
            for key, _ in node.value
        )
    elif isinstance(node, yaml.SequenceNode):
        items = [(str(number), value) for number, value in enumerate(node.value)]
    for key, value in items:
        yield from _lines_below(value, f"{path}.{key}" if path else key)


def has_anchors(text: str | bytes) -> bool:
    """Return whether a text names a part of itself, to repeat it.

    >>> has_anchors("a: &x 1"), has_anchors("a: b & c")
    (True, False)
    """
    # The scan takes as long as the rest, and most texts have no such sign. Bytes may be UTF-16.
    if isinstance(text, str) and "&" not in text:
        return False
    return any(isinstance(token, yaml.AnchorToken) for token in yaml.scan(text, PlainLoader))


def number_floats(target: type[yaml.SafeLoader] | type[yaml.SafeDumper]) -> None:
    """Make a loader or dumper class read ``1e-3`` as a float, without changing its parents."""
    target.yaml_implicit_resolvers = {
        start: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:float"]
        for start, resolvers in target.yaml_implicit_resolvers.items()
    }
    target.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, FLOAT_STARTS)


def _as_text(dumper: PlainDumper, value: object) -> yaml.Node:
    return dumper.represent_str(redact(value) if isinstance(value, str) else redact(str(value)))


number_floats(PlainDumper)
number_floats(PlainLoader)
PlainDumper.add_representer(tuple, yaml.SafeDumper.represent_list)
PlainDumper.add_multi_representer(object, _as_text)
