"""A YAML loader that a file of somebody else cannot make run for ever, or out of memory."""

from __future__ import annotations

import yaml

DEEPEST = 100
"""Lists and mappings inside each other."""

MOST_VALUES = 100_000
"""Values of a file, those that aliases repeat counted each time."""


class BoundedLoader(yaml.SafeLoader):
    """The safe loader; what is too deep, too large or no number ends in an error with its line."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        """Read a node, unless it is nested too deeply."""
        if self._depth > DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=f"lists and mappings are more than {DEEPEST} deep",
                problem_mark=self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        self._depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[arg-type]
        self._depth -= 1
        return node

    def get_single_node(self) -> yaml.Node | None:
        """Read the one document of a text, unless aliases make too much of it."""
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            _count(node, {})
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """Make a value; a number that cannot be read is an error of the file."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            problem = str(error).splitlines()[0].partition(";")[0]
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the values below a node as often as they occur."""
    if id(node) not in known:
        known[id(node)] = 1  # While it is open: one that contains itself is told later.
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        count = 1 + sum(_count(part, known) for part in parts)
        if count > MOST_VALUES:
            raise yaml.MarkedYAMLError(
                problem=f"with its aliases it has more than {MOST_VALUES:,} values",
                problem_mark=node.start_mark,
            )
        known[id(node)] = count
    return known[id(node)]
