"""Nodes of a config become parts; what is wrong is collected."""

from pathlib import Path

import pytest

from hookloop.config.parts.part import Description, Part, PartReader, is_object
from hookloop.config.parts.signature import Unknown
from hookloop.config.registry import MODELS, SCHEDULES, Registry
from hookloop.config.tree import Config, Key
from hookloop.errors import ConfigError


class Square:
    def __init__(self, side: int, color: str = "red", *, inner: object = None) -> None: ...


def area(side: int, scale: float = 1.0) -> float:
    return side * scale


@pytest.fixture
def shapes() -> Registry[object]:
    registry: Registry[object] = Registry("shape", "hookloop.shapes")
    registry.register(Square)
    registry.register(area)
    return registry


def make_reader(marks: dict[Key, str] | None = None, path: str = "a.yaml") -> PartReader:
    return PartReader(Config({}, Path(path), marks or {}))


def messages(reader: PartReader) -> list[str]:
    return [str(problem) for problem in reader.problems]


def test_a_description_is_a_name_a_mapping_or_a_class() -> None:
    reader = make_reader()
    assert reader.describe(("a",), "Square") == Description(("a",), "Square", ("a",), {}, ("a",))
    assert reader.describe(("a",), Square) == Description(("a",), Square, ("a",), {}, ("a",))
    value = {"type": "Square", "side": 3}
    written = reader.describe(("a",), value)
    assert written == Description(("a",), "Square", ("a", "type"), {"side": 3}, ("a",))
    assert value == {"type": "Square", "side": 3}
    assert reader.problems == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "a: expected a type or a mapping with 'type', got 3."),
        (
            {"typ": "Square"},
            "a: a mapping that describes an object needs 'type'. Did you mean 'typ'?",
        ),
        (
            {"side": 3},
            "a: a mapping that describes an object needs 'type'. Write {type: ..., side}.",
        ),
    ],
)
def test_what_describes_nothing_is_reported(value: object, message: str) -> None:
    reader = make_reader()
    assert reader.describe(("a",), value) is None
    assert messages(reader) == [message]


def test_a_part_has_its_checked_arguments_and_the_parts_in_them(shapes: Registry[object]) -> None:
    reader = make_reader()
    part = reader.part(("a",), {"type": "Square", "side": 3, "inner": {"type": "Square"}}, shapes)
    assert isinstance(part, Part)
    assert (part.make, part.arguments["side"]) == (Square, 3)
    inner = part.arguments["inner"]
    assert isinstance(inner, Part)
    assert inner.key == ("a", "inner")
    assert messages(reader) == ["a.inner: Square needs 'side'."]


def test_unknown_and_wrong_arguments_are_reported_at_their_own_lines(
    shapes: Registry[object],
) -> None:
    marks: dict[Key, str] = {("a",): "a.yaml:1", ("a", "sides"): "a.yaml:2", ("a", "color"): "b:7"}
    reader = make_reader(marks)
    reader.part(("a",), {"type": "Square", "sides": 3, "color": 4}, shapes)
    assert messages(reader) == [
        "a.yaml:2: a.sides: Square has no argument 'sides'. Did you mean 'side'?",
        "b:7: a.color: expected str, got 4.",
        "a.yaml:1: a: Square needs 'side'.",
    ]


def test_arguments_that_building_adds_may_be_missing(shapes: Registry[object]) -> None:
    reader = make_reader()
    part = reader.part(("a",), "Square", shapes, supplied=("side", "zebra"))
    assert isinstance(part, Part)
    assert part.supplied == {"side"}
    written = reader.part(("a",), {"type": "Square", "side": 1}, shapes, supplied=("side",))
    assert isinstance(written, Part)
    assert written.supplied == set()
    assert reader.problems == []


@pytest.mark.parametrize(
    ("value", "way"),
    [
        ("area", "use"),
        ({"type": "area", "scale": 2}, "bind"),
        ({"type": "area", "side": 2}, "call"),
        ({"type": "Square", "side": 2}, "call"),
    ],
)
def test_a_function_is_used_bound_or_called(
    shapes: Registry[object], value: object, way: str
) -> None:
    part = make_reader().function(("loss",), value, shapes)
    assert isinstance(part, Part)
    assert part.way == way


def test_settings_are_kept_apart_unless_the_constructor_takes_them(
    shapes: Registry[object],
) -> None:
    reader = make_reader()
    written = Description(
        ("a",), "Square", ("a",), {"side": 1, "color": "blue", "name": "x"}, ("a",)
    )
    part = reader.read(written, shapes, settings={"name": str, "color": int})
    assert part is not None
    assert part.settings == {"name": "x"}
    assert part.arguments == {"side": 1, "color": "blue"}
    assert reader.problems == []


def test_auto_is_a_length_only_in_a_schedule() -> None:
    reader = make_reader()
    assert reader.value(("schedule", "T_max"), "auto", int, SCHEDULES) == "auto"
    reader.value(("schedule", "gamma"), "auto", float, SCHEDULES)
    reader.value(("model", "T_max"), "auto", int, MODELS)
    assert messages(reader) == [
        "schedule.gamma: expected float, got 'auto'.",
        "model.T_max: expected int, got 'auto'.",
    ]


def test_a_reference_is_the_object_itself() -> None:
    reader = make_reader()
    assert reader.value(("a",), {"ref": "math:floor"}, Unknown, MODELS).__name__ == "floor"  # type: ignore[attr-defined]
    reader.value(("a",), {"ref": "math:flor"}, Unknown, MODELS)
    (message,) = messages(reader)
    assert message.startswith("a.ref: the module 'math' has no 'flor'. Did you mean 'floor'?")


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        ("3", int, "a: expected int, got '3'. Write 3, without quotes."),
        ("three", int, "a: expected int, got 'three'."),
        ("${lost}", int, None),
    ],
)
def test_a_value_of_the_wrong_type_is_reported(
    value: object, annotation: object, message: str | None
) -> None:
    reader = make_reader()
    assert reader.plain(("a",), value, annotation) == value
    assert messages(reader) == ([message] if message else [])


def test_null_without_anything_to_remove_is_reported() -> None:
    reader = make_reader()
    reader.config.removed.add(("hooks", "ema"))
    assert reader.is_removed(("hooks", "ema"), None)
    assert not reader.is_removed(("hooks", "ema"), {})
    assert reader.problems == []
    assert reader.is_removed(("hooks", "eam"), None, ["ema", "eam"])
    assert messages(reader) == ["hooks.eam: there is no 'eam' to remove. Did you mean 'ema'?"]


def test_none_in_a_python_file_is_not_a_mistake_but_on_the_command_line_it_is() -> None:
    reader = make_reader({("hooks", "b"): "command line: hooks.b=null"}, "a.py")
    assert reader.is_removed(("hooks", "a"), None)
    assert reader.problems == []
    assert reader.is_removed(("hooks", "b"), None)
    assert len(reader.problems) == 1


def test_problems_are_raised_together_in_the_order_of_the_files() -> None:
    marks: dict[Key, str] = {
        ("a",): "command line: a=1",
        ("b",): "b.yaml:10",
        ("c",): "b.yaml:9",
        ("d",): "a.yaml:30",
    }
    reader = make_reader(marks)
    for name in ("a", "b", "c", "d", "b"):
        reader.report((name,), "no.")
    with pytest.raises(ConfigError) as caught:
        reader.raise_problems()
    assert [problem.message[0] for problem in caught.value.problems] == ["d", "c", "b", "a"]


def test_the_causes_of_problems_are_kept() -> None:
    reader = make_reader()
    reader.raise_problems()  # There is none yet.
    first, second = ValueError("one"), KeyError("two")
    reader.report(("a",), "no.", first)
    with pytest.raises(ConfigError) as caught:
        reader.raise_problems()
    assert caught.value.__cause__ is first
    reader.report(("b",), "no.", second)
    with pytest.raises(ConfigError) as caught:
        reader.raise_problems()
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert caught.value.__cause__.exceptions == (first, second)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(object(), True), ([1, object()], True), (3, False), (None, False), ({}, False), (int, False)],
)
def test_an_object_is_told_from_a_description(value: object, expected: bool) -> None:
    assert is_object(value) is expected
