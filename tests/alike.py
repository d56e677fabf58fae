"""Compare what was recorded on one machine with what another one computes."""

import re

import pytest

NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")

RELATIVE = 1e-4
"""torch's kernels, and the C library's functions, round in another order or way on another CPU. In
single precision that is 1e-7 per operation; these trainings make some dozens of updates."""


def assert_alike(recorded, found, path=""):
    """Expect the same structure, integers and words, and floats that agree in all but rounding."""
    assert type(recorded) is type(found), path
    if isinstance(recorded, dict):
        assert sorted(recorded) == sorted(found), path
        for key in recorded:
            assert_alike(recorded[key], found[key], f"{path}.{key}")
    elif isinstance(recorded, list):
        assert len(recorded) == len(found), f"{path}: {found} instead of {recorded}"
        for index, (one, other) in enumerate(zip(recorded, found, strict=True)):
            assert_alike(one, other, f"{path}[{index}]")
    elif isinstance(recorded, float):
        assert found == pytest.approx(recorded, rel=RELATIVE, abs=1e-6, nan_ok=True), path
    elif isinstance(recorded, str):
        _assert_same_text(recorded, found, path)
    else:
        assert recorded == found, path


def _assert_same_text(recorded, found, path):
    """Expect the same words; a number that was rounded for a line may differ in its last digit."""
    message = f"{path}: {found!r} instead of {recorded!r}"
    assert NUMBER.sub("#", recorded) == NUMBER.sub("#", found), message
    for one, other in zip(NUMBER.findall(recorded), NUMBER.findall(found), strict=True):
        digits = len(one.partition("e")[0].partition(".")[2])
        size = abs(float(one)) if "e" in one else 1.0
        last = 1.01 * 10.0**-digits * (size if digits < 7 or "e" in one else 1.0)
        assert float(other) == pytest.approx(float(one), rel=RELATIVE, abs=last), message
