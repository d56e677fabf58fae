from pathlib import Path

import pytest

from hookloop.config.load import load
from hookloop.errors import ConfigError

LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x0: 1, x1: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 10)}]}}\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

CRAFTED = {
    "laughs": (LAUGHS, r"a.yaml:5: not valid YAML: with its aliases it has more than 100,000"),
    "merges": (MERGES, r"a.yaml:6: not valid YAML: with its aliases it has more than 100,000"),
    "deep": ("x:\n  " + "[" * 100_000, r"a.yaml:2: not valid YAML: .*more than 100 deep"),
    "deep block": (
        "".join(f"{' ' * depth}x:\n" for depth in range(300)),
        r"a.yaml:101: not valid YAML: .*more than 100 deep",
    ),
    "digits": ("x: 1\ny: " + "9" * 5000, r"a.yaml:2: not valid YAML: Exceeds the limit"),
}


@pytest.mark.parametrize("kind", CRAFTED)
def test_a_crafted_file_is_an_error_with_its_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, words = CRAFTED[kind]
    Path("a.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        load("a.yaml")


@pytest.mark.parametrize("value", ["[" * 1000, "9" * 5000, "[&a [1], " + "*a," * 60_000 + "]"])
def test_a_crafted_override_is_a_problem(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text("model: x\n")
    (problem,) = load("a.yaml", [f"vars.x={value}"]).problems
    assert "the value is not valid YAML" in problem.message


def test_reading_data_alone_runs_no_python(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')\n")
    (tmp_path / "config.yaml").write_text("_base_: evil.py\nmodel: x\n")
    with pytest.raises(ConfigError, match="a Python file is not read here"):
        load(tmp_path, only_data=True)
