"""Versions that can be compared, and the commit of a project."""

import pytest

from hookloop_mmengine.utils import digit_version


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2.1.0", (2, 1, 0, 0, 0, 0)),
        ("1.10.0+cu113", (1, 10, 0, 0, 0, 0)),
        ("v1.2.3.4.5", (1, 2, 3, 4, 0, 0)),
        ("1.0rc2", (1, 0, 0, 0, -1, 2)),
        ("1.0.0b1", (1, 0, 0, 0, -2, 1)),
        ("1.0.0a0", (1, 0, 0, 0, -3, 0)),
        ("1.0.0alpha", (1, 0, 0, 0, -3, 0)),
        ("1.0.0.dev3", (1, 0, 0, 0, -4, 0)),
        ("1.0.post2", (1, 0, 0, 0, 1, 2)),
    ],
)
def test_a_version_as_numbers(text, wanted):
    assert digit_version(text) == wanted


def test_versions_are_in_order():
    texts = ["1.9.0", "1.10.0.dev1", "1.10.0a1", "1.10.0rc1", "1.10.0", "1.10.0.post1", "1.10.1"]
    assert sorted(texts, key=digit_version) == texts
    assert digit_version("1.2", length=2) == (1, 2, 0, 0)


@pytest.mark.parametrize("text", ["", "abc", "1.x"])
def test_another_text_is_rejected(text):
    with pytest.raises(ValueError, match="Invalid version"):
        digit_version(text)
    with pytest.raises(AssertionError):
        digit_version("parrots")
