"""Every file that a run makes, as a symbolic link in a directory of somebody else."""

from pathlib import Path

import pytest
import torch
from tests.names import epoch_file
from tests.tiny import make_classifier

from hookloop import hooks
from hookloop.engine.hook import Hook
from hookloop.engine.run import Run
from hookloop.errors import LinkError
from hookloop.runs.lock import LOCK
from hookloop.writers.media import MediaFiles
from hookloop.writers.records import Image, Table, Text

CONTINUED = ("run.log", "metrics.jsonl", "interventions.jsonl", LOCK)
READ_FIRST = ("last_checkpoint", epoch_file(1), "metrics.csv")
"""What a resume reads; what these links lead to is a matter of other tests."""


class Emit(Hook):
    """Hands over one record of each kind."""

    def after_train_iter(self, run: Run) -> None:
        run.emit(Image("picture", torch.zeros(4, 4)))  # type: ignore[arg-type]
        run.emit(Text("text", "words"))
        run.emit(Table("table", ["a"], [[1]]))


def train(directory: Path, project: Path, *, resume: object = None) -> None:
    made = [
        hooks.WriteMetrics(every=1),
        hooks.LogMetrics(every=1, console=False),
        hooks.WriteCSV(every=1),
        hooks.SaveCheckpoint("1 epochs"),
        hooks.TraceRun(),
        hooks.RecordHookTimes(),
        hooks.CountComplexity(),
        hooks.ProfileOperators(wait=0, warmup=0, active=1, tensorboard=True),
        hooks.SaveConfusionMatrix(streams=["val"]),
        hooks.SavePredictions(streams=["val"]),
        hooks.SavePredictions(streams=["val"], format="npz").named("npz"),
        hooks.SaveFiles([project]),
        hooks.SnapshotSource(project),
        hooks.ExportModel(),
        hooks.ExportModel("export").named("program"),
        hooks.WriteTo(lambda run: MediaFiles(run.dir)).named("media"),
        Emit(),
    ]
    make_classifier(
        hooks=made, run_dir=directory, resume=resume, setup={"config": {"a": 1}}
    ).train()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("project")
    (project / "sub").mkdir()
    (project / "sub" / "net.py").write_text("x = 1\n")
    return project


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory, project: Path) -> list[str]:
    """What a run leaves in its directory."""
    run = tmp_path_factory.mktemp("honest") / "run"
    train(run, project)
    return [str(path.relative_to(run)) for path in sorted(run.rglob("*")) if path.is_file()]


def plant(run: Path, names: list[str], victims: Path) -> None:
    for number, name in enumerate(names):
        victim = victims / str(number)
        victim.write_text("precious")
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).symlink_to(victim)


@pytest.mark.slow
def test_no_file_of_a_run_is_written_through_a_link(
    tmp_path: Path, project: Path, names: list[str]
) -> None:
    planted = [name for name in names if name not in (*CONTINUED, *READ_FIRST)]
    assert len(planted) > 20
    victims, run = tmp_path / "victims", tmp_path / "run"
    victims.mkdir()
    plant(run, [*planted, f".{epoch_file(1)}.staged"], victims)
    train(run, project, resume="auto")
    assert {victim.read_text() for victim in victims.iterdir()} == {"precious"}
    assert not [name for name in planted if (run / name).is_symlink()]


@pytest.mark.parametrize("name", CONTINUED)
def test_a_file_that_is_continued_ends_the_run_before_it_begins(
    tmp_path: Path, project: Path, name: str
) -> None:
    plant(tmp_path / "run", [name, "config.yaml"], tmp_path)
    with pytest.raises(LinkError, match="symbolic link"):
        train(tmp_path / "run", project, resume="auto")
    assert (tmp_path / "0").read_text() == "precious"
    assert (tmp_path / "run" / name).is_symlink()


@pytest.mark.slow
def test_a_run_directory_behind_a_link_is_trained_in(tmp_path: Path, project: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "scratch")
    train(tmp_path / "runs" / "one", project)
    assert (tmp_path / "scratch" / "one" / "metrics.jsonl").is_file()
