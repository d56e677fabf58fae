"""``hookloop find-lr``: a curve, a suggestion, and nothing on disk."""

import json
from pathlib import Path

import pytest
from tests import warm
from tests.unit.cli.conftest import Invoke


def names(project: Path) -> list[str]:
    return sorted(path.name for path in project.iterdir() if path.name != "__pycache__")


@pytest.mark.slow
def test_the_curve_and_the_override_are_printed(project: Path, invoke: Invoke) -> None:
    before = names(project)
    result = invoke(
        "find-lr", "config.yaml", "--from", "1e-4", "--to", "100", "--iters", "40", "--png", "a.png"
    )
    assert result.exit_code == 0, result.output
    assert "*" in result.stdout
    assert "Suggested: optimizer.lr=" in result.stdout
    assert result.stdout.isascii()
    assert (project / "a.png").read_bytes().startswith(b"\x89PNG")
    assert names(project) == sorted([*before, "a.png"])
    assert "\x1b" not in result.output


def test_a_schedule_with_a_rate_of_its_own_is_named(project: Path, invoke: Invoke) -> None:
    cycle = "schedule={type: OneCycleLR, max_lr: 0.5, total_steps: auto}"
    result = invoke("find-lr", "config.yaml", cycle, "--from", "1e-4", "--iters", "40")
    assert result.exit_code == 0, result.output
    assert "The schedule OneCycleLR sets the rate itself" in result.stdout
    words = result.stdout.split()
    found = words[words.index("at", words.index("fastest")) + 1].rstrip(".")
    assert words[words.index("Suggested:") + 1] == f"optimizer.lr={found}"


def test_no_suggestion_is_said(project: Path, invoke: Invoke) -> None:
    result = invoke("find-lr", "config.yaml", "--iters", "3")
    assert result.exit_code == 0, result.output
    assert "No suggestion" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "1", "--to", "0.1"), "The rates must rise"),
        (("optimizer=null",), "There is no optimizer"),
        (("optimizer.lr=abc",), "optimizer.lr"),
    ],
)
def test_what_cannot_be_searched_is_a_user_error(
    project: Path, invoke: Invoke, arguments: tuple[str, ...], message: str
) -> None:
    result = invoke("find-lr", "config.yaml", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.slow
def test_the_command_prints_one_object(project: Path) -> None:
    done = warm.run("find-lr", "config.yaml", "--iters", "30", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["rates"]) == len(found["losses"]) == len(found["smoothed"])
    assert set(found) == {
        "exit_code", "suggestion", "overrides", "factor", "ended", "rates", "losses", "smoothed",
        "again",
    }  # fmt: skip
    assert names(project) == ["cli_project.py", "config.yaml"]


@pytest.mark.slow
def test_ranks_search_together_and_the_first_reports(project: Path, invoke: Invoke) -> None:
    before = names(project)
    options = ["--from", "1e-4", "--to", "100", "--iters", "30"]
    alone = json.loads(invoke("find-lr", "config.yaml", *options, "--json").stdout)
    result = invoke("find-lr", "config.yaml", *options, "--ranks", "2", "--json", "--png", "a.png")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["losses"] == pytest.approx(alone["losses"], rel=1e-3)
    assert found["overrides"] == alone["overrides"]
    assert names(project) == sorted([*before, "a.png"])
    failed = invoke("find-lr", "config.yaml", "model.in_features=3", "--ranks", "2")
    assert failed.exit_code == 1
    assert "failed in iteration 0: RuntimeError: mat1 and mat2 shapes" in failed.stderr
