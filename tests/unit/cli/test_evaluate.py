"""Which weights an evaluation uses, and what it leaves on disk."""

from pathlib import Path

import pytest
from tests.names import epoch_file
from tests.unit.cli.conftest import Invoke


@pytest.fixture
def run(project: Path, invoke: Invoke) -> Path:
    assert invoke("train", "config.yaml", "--run-dir", "runs/a").exit_code == 0
    return project / "runs/a"


def files(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*")}


def number(output: str) -> float:
    return float(output.split()[-1])


def test_a_run_is_evaluated_with_its_newest_checkpoint(run: Path, invoke: Invoke) -> None:
    before = len((run / "metrics.jsonl").read_text().splitlines())
    result = invoke("validate", "runs/a")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"runs/a/{epoch_file(2)}  val/loss ")
    assert len((run / "metrics.jsonl").read_text().splitlines()) > before


def test_the_checkpoint_that_was_loaded_is_named_and_not_a_damaged_newer_one(
    run: Path, invoke: Invoke
) -> None:
    (run / epoch_file(2)).write_bytes(b"damaged")
    result = invoke("validate", "runs/a")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"runs/a/{epoch_file(1)}  val/loss ")


def test_a_checkpoint_of_the_run_is_chosen_by_its_path(run: Path, invoke: Invoke) -> None:
    first = invoke("validate", "runs/a", "--checkpoint", f"runs/a/{epoch_file(1)}")
    second = invoke("validate", "runs/a", f"setup.load_from=runs/a/{epoch_file(2)}")
    assert first.stdout.startswith(f"runs/a/{epoch_file(1)}")
    assert second.stdout.startswith(f"runs/a/{epoch_file(2)}")
    assert number(first.stdout) > number(second.stdout)


def test_a_config_is_evaluated_without_a_trace(run: Path, invoke: Invoke) -> None:
    before = files(run.parents[1])
    result = invoke("test", "config.yaml", "--checkpoint", "runs/a")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"runs/a/{epoch_file(2)}  test/loss ")
    assert files(run.parents[1]) - before <= {"__pycache__"}


def test_without_a_checkpoint_the_weights_are_untrained(project: Path, invoke: Invoke) -> None:
    result = invoke("validate", "config.yaml")
    assert result.exit_code == 0, result.output
    assert "no checkpoint is given, so the weights are untrained" in result.stderr
    assert result.stdout.startswith("config.yaml  val/loss ")


def test_an_evaluation_is_kept_as_a_run_if_wanted(project: Path, invoke: Invoke) -> None:
    assert invoke("validate", "config.yaml", "--run-dir", "runs/kept").exit_code == 0
    assert (project / "runs/kept/metrics.jsonl").is_file()


def test_a_directory_that_names_a_checkpoint_elsewhere_is_not_trusted(
    run: Path, invoke: Invoke
) -> None:
    (run / "last_checkpoint").write_text(f"/somewhere/else/{epoch_file(9)}")
    result = invoke("validate", "config.yaml", "--checkpoint", "runs/a")
    assert result.exit_code == 2
    assert f"names '/somewhere/else/{epoch_file(9)}', outside of it, as its newest" in result.stderr


def test_files_that_hooks_leave_are_reported(project: Path, invoke: Invoke) -> None:
    result = invoke("test", "config.yaml", "hooks=[{SavePredictions: {}}]")
    assert result.exit_code == 0, result.output
    assert "What hooks wrote was not kept: " in result.stderr
