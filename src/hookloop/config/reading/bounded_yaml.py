"""A YAML loader with limits, so that a hostile file cannot exhaust time or memory."""

from __future__ import annotations

import yaml

DEEPEST = 100
"""How deep lists and mappings may be nested."""

MOST_VALUES = 100_000
"""How many values a file may have; a value that aliases repeat is counted each time."""


class BoundedLoader(yaml.SafeLoader):
    """The safe loader. Too deep, too large or an unreadable number is an error with its line."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        """Read a node, unless it is nested too deeply."""
        # Python's own limit would end in a RecursionError, without a line.
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
        """Read the only document of a text, unless aliases make it too large."""
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            _count(node, {})
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """Return a value; a number that cannot be read is an error of the file."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            # Python limits how many digits an int may have, and adds advice for programmers.
            problem = str(error).splitlines()[0].partition(";")[0]
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


def _count(node: yaml.Node, counts: dict[int, int]) -> int:
    """Return the number of values below a node; repeated ones are counted each time."""
    # Counted before anything is built: ten lines of aliases can stand for billions of values.
    if id(node) not in counts:
        counts[id(node)] = 1  # While it is open: one that contains itself is reported later.
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        count = 1 + sum(_count(part, counts) for part in parts)
        if count > MOST_VALUES:
            raise yaml.MarkedYAMLError(
                problem=f"with its aliases it has more than {MOST_VALUES:,} values",
                problem_mark=node.start_mark,
            )
        counts[id(node)] = count
    return counts[id(node)]
