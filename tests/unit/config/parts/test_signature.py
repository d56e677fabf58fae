from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Optional, Union

import pytest
from torch import Tensor, nn

from hookloop.config.parts.signature import Signature, Unknown, convert, spell_type
from hookloop.every import Every


class Example:
    def __init__(self, size: int, rate: "float" = 0.5, *layers: object, deep: bool = True) -> None:
        pass


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (3, int, 3),
        (3, float, 3.0),
        (1e5, int, 100000),
        (None, int | None, None),
        ([0.9, 1], tuple[float, float], (0.9, 1.0)),
        ([1, 2], list[int], [1, 2]),
        ("a", Literal["a", "b"], "a"),
        ("out", Path, Path("out")),
        (0.1, Union[float, Tensor], 0.1),  # noqa: UP007 - as torch writes it
        (0.1, Optional[float], 0.1),  # noqa: UP045
        (float("nan"), str, "rejected"),
        ("2 epochs", Every | int | str, "2 epochs"),
        ("anything", Unknown, "anything"),
        ("anything", Any, "anything"),
        ("anything", nn.Module, "anything"),
        ({"a": 1}, Mapping[str, int], {"a": 1}),
        (["a"], Sequence[str], ["a"]),
        (True, bool, True),
        (True, int, "rejected"),
        (True, float, "rejected"),
        (1, bool, "rejected"),
        ("3", int, "rejected"),
        ("0.1", float, "rejected"),
        ("fast", Union[float, Tensor], "rejected"),  # noqa: UP007
        (1.5, int, "rejected"),
        ("c", Literal["a", "b"], "rejected"),
        (["x"], list[int], "rejected"),
        ("abc", Sequence[str], "rejected"),
        ([1, 2, 3], tuple[float, float], "rejected"),
        ("sometimes", Every | int | str, "rejected"),
        ("a.b:c", Callable[[int], int], "rejected"),
        (3, str, "rejected"),
    ],
)
def test_values_are_held_against_annotations(
    value: object, annotation: object, expected: object
) -> None:
    if expected == "rejected":
        with pytest.raises(ValueError, match="expected|is not an interval"):
            convert(value, annotation)
    else:
        converted = convert(value, annotation)
        assert converted == expected
        assert type(converted) is type(expected)


def test_an_object_is_let_through() -> None:
    module = nn.Linear(1, 1)
    assert convert(module, int) is module
    assert convert([module], list[int]) == [module]


def test_a_rejection_names_the_type_as_its_author_wrote_it() -> None:
    with pytest.raises(ValueError, match=r"^expected int \| None, got 'x'\.$"):
        convert("x", int | None)
    assert spell_type(Literal["min", "max"]) == "'min' or 'max'"
    assert spell_type(Sequence[str]) == "Sequence[str]"


def test_a_signature_tells_what_can_be_given() -> None:
    signature = Signature.of(Example)
    assert signature.name == "Example"
    assert signature.required == ("size",)
    assert signature.star == "layers"
    assert signature.annotations["rate"] is float
    assert signature.unknown("deep") is None
    assert signature.unknown("layers") is None
    assert signature.unknown("szie") == "Example has no argument 'szie'. Did you mean 'size'?"
    assert signature.unknown("zebra") == (
        "Example has no argument 'zebra'. It takes size, rate, deep, layers."
    )
    assert signature.missing({"rate"}) == ["size"]


def test_open_signatures_accept_everything() -> None:
    def function(**options: object) -> None: ...

    assert Signature.of(function).unknown("anything") is None
    assert not Signature.of(function).accepts("anything")


def test_a_class_without_arguments_says_so() -> None:
    class Empty: ...

    assert Signature.of(Empty).unknown("x") == "Empty has no argument 'x'. It takes none."
