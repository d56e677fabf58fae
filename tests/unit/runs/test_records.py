import json
import math
from pathlib import Path

import pytest

from hookloop.runs.records import to_json, to_number


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_json_lacks_survive_a_round_trip(value: float) -> None:
    text = to_json({"loss": value})
    read = to_number(json.loads(text)["loss"])
    assert isinstance(read, float)
    assert read == value or (math.isnan(read) and math.isnan(value))


def test_what_is_written_is_strict_json() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(to_json([math.nan, {"a": (math.inf,)}]), parse_constant=refuse)


def test_foreign_scalars_are_written_as_the_number_they_hold() -> None:
    import numpy
    import torch

    assert to_json([numpy.float32(0.5), torch.tensor(2), torch.tensor(math.nan)]) == (
        '[0.5, 2, "NaN"]'
    )


def test_what_json_cannot_say_is_written_as_text() -> None:
    assert to_json({"out": Path("a/b")}) == '{"out": "a/b"}'
