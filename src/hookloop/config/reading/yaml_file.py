"""Read YAML into a tree with the line of every node. It can name objects, but not create them."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from yaml.reader import ReaderError

from hookloop.config.tree import Config, Key, spell
from hookloop.errors import ConfigError, Problem
from hookloop.runs.plain_yaml import number_floats

_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_CLOCK = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_OTHER_OCTAL = re.compile(r"[-+]?0o[0-7_]+")
_BOOLEAN = re.compile(r"(?i:yes|no|on|off)")


def surprise(node: yaml.Node, value: object) -> str | None:
    """Return a warning if a value was read as something that it does not look like.

    Args:
        node: The scalar as it is written.
        value: The value that was read.

    >>> surprise(yaml.compose("NO"), False)
    "NO is read as false: write false, or 'NO' for the text."
    """
    if not isinstance(node, yaml.ScalarNode) or node.style is not None:  # Quotes make it clear.
        return None
    text = str(node.value)
    if isinstance(value, bool):
        word = str(value).lower()
        if _BOOLEAN.fullmatch(text):
            return f"{text} is read as {word}: write {word}, or '{text}' for the text."
    elif isinstance(value, int | float) and _CLOCK.fullmatch(text):
        return f"{text} is read as {value}, to the base of 60: write '{text}' for the text."
    # Zeros alone are 0 in any base.
    elif isinstance(value, int) and _OCTAL.fullmatch(text) and text.strip("-+0_"):
        plain = text.lstrip("-+0_")
        sign = "-" if text.startswith("-") else ""
        return (
            f"{text} is read as {value}, in octal: write {sign}{plain}, or '{text}' for the text."
        )
    elif isinstance(value, str) and _OTHER_OCTAL.fullmatch(text):
        return f"{text} is read as text: write {text.replace('0o', '0')} for {int(text, 8)}."
    return None


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


class _Loader(BoundedLoader):
    """The safe loader, for which ``1e-3`` is a number."""


number_floats(_Loader)
_Loader.yaml_implicit_resolvers = {  # A date stays text: no argument of ours takes a date.
    start: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for start, known in _Loader.yaml_implicit_resolvers.items()
}

MERGE = "<<"


def read_yaml(path: Path, shown: str) -> Config:
    """Read a YAML file.

    Args:
        path: The file.
        shown: Its name in messages.
    """
    # Windows editors put a byte order mark in front, which `utf-8-sig` skips.
    text = path.read_text(encoding="utf-8-sig")
    config = Config({}, path)
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return config
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(
                [Problem("a config is a mapping of keys to values.", f"{shown}:{_line(root)}")]
            )
        tree = _Walk(loader, config, shown).value(root, ())
        assert isinstance(tree, dict)
        config.tree = tree
    except yaml.YAMLError as error:
        raise ConfigError([_syntax_problem(error, text, shown)]) from error
    finally:
        if loader is not None:
            loader.dispose()
    return config


def parse_value(text: str) -> object:
    """Read one value as a YAML file would: ``3``, ``1e-3``, ``null``, ``[1, 2]``, ``{a: 1}``.

    >>> parse_value("1e-3"), parse_value("[a, 2]"), parse_value("")
    (0.001, ['a', 2], None)
    """
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def surprises_in(text: str) -> list[str]:
    """Return warnings about parts of a value that are read differently than they look."""
    config = Config({}, Path())
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is not None:
            _Walk(loader, config, "").value(node, ())
    finally:
        loader.dispose()
    return [warning.message.removeprefix(": ") for warning in config.warnings]


class _Walk:
    """One pass over the YAML nodes, which have lines, unlike the values made from them."""

    def __init__(self, loader: _Loader, config: Config, shown: str) -> None:
        self.loader = loader
        self.config = config
        self.shown = shown
        self.open: list[yaml.Node] = []

    def value(self, node: yaml.Node, key: Key) -> object:
        self.config.marks.setdefault(key, f"{self.shown}:{_line(node)}")
        if node in self.open:  # `a: &a [*a]` would never end.
            raise yaml.MarkedYAMLError(
                problem="a value contains itself", problem_mark=node.start_mark
            )
        self.open.append(node)
        try:
            if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
                return self.mapping(node, key)
            if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
                return [self.value(item, (*key, index)) for index, item in enumerate(node.value)]
            value = self.loader.construct_object(node, deep=True)
            if (unlike := surprise(node, value)) is not None:
                where = f"{self.shown}:{_line(node)}"
                self.config.warnings.append(Problem(f"{spell(key)}: {unlike}", where))
            return value
        finally:
            self.open.pop()

    def mapping(self, node: yaml.MappingNode, key: Key) -> dict[str | int, object]:
        # Before flattening, which adds keys that the file does not repeat.
        self._report_duplicates(node, key)
        self.loader.flatten_mapping(
            node
        )  # `<<: *other` becomes the keys of the other mapping, in front.
        result: dict[str | int, object] = {}
        for name_node, value_node in node.value:
            name = self.name(name_node)
            # The line of an entry is the line of its key, also when the value starts below it.
            self.config.marks[(*key, name)] = f"{self.shown}:{_line(name_node)}"
            value = self.value(value_node, (*key, name))
            if value is None and result.get(name) is not None:
                self.config.removed.add((*key, name))
            result[name] = value
        return result

    def name(self, node: yaml.Node) -> str | int:
        if node.tag == "tag:yaml.org,2002:merge":
            return MERGE
        if not isinstance(node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(
                problem="a key is text or a number, not a list or a mapping",
                problem_mark=node.start_mark,
            )
        name = self.loader.construct_object(node, deep=True)
        if isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool)):
            return name
        # YAML reads `on:` and `no:` as booleans; a key is meant as text.
        return str(node.value)

    def _report_duplicates(self, node: yaml.MappingNode, key: Key) -> None:
        first: dict[str | int, int] = {}
        for name_node, _ in node.value:
            name = self.name(name_node)
            if name in first and name != MERGE:
                where = f"{self.shown}:{_line(name_node)}"
                message = f"'{spell((*key, name))}' is given twice, first in line {first[name]}."
                self.config.problems.append(Problem(message, where))
            first.setdefault(name, _line(name_node))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _syntax_problem(error: yaml.YAMLError, text: str, shown: str) -> Problem:
    if isinstance(error, ReaderError):
        number = text.count("\n", 0, error.position) + 1
        what = f"the character {chr(error.character)!r} is not allowed, not even in quotes"
        return Problem(f"not valid YAML: {what}. Is it a text file?", f"{shown}:{number}")
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return Problem(f"not valid YAML: {str(error).splitlines()[0]}.", shown)
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    problem = getattr(error, "problem", None) or "it cannot be read"
    opened = getattr(error, "context_mark", None)
    if ("stream end" in problem or "end of stream" in problem) and opened is not None:
        # The parser notices it at the end of the file; the mistake is where it was opened.
        return Problem(
            "not valid YAML: what starts here is never closed.", f"{shown}:{opened.line + 1}"
        )
    return Problem(f"not valid YAML: {problem}.{_hint(line, problem)}", f"{shown}:{mark.line + 1}")


def _hint(line: str, problem: str) -> str:
    if "\\t" in problem or "\t" in line[: len(line) - len(line.lstrip())]:
        return " Indent with spaces, not with tabs."
    if "${" in line and "{" in line.replace("${", ""):
        return ' Inside {...} an interpolation needs quotes: "${name}".'
    if "mapping values are not allowed" in problem:
        return " Check the indentation, and quote text that contains ': '."
    return ""
