"""A short run leaves nothing: files, directories and generators are the same before and after."""

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.cli.conftest import Invoke
from torch.utils.data import DataLoader, Dataset

from hookloop import Trainer, find_batch, find_lr, short_run
from hookloop.cli.prove.task_process import MODULE
from hookloop.config.build import arguments
from hookloop.config.load import load
from hookloop.errors import HookloopError
from hookloop.hooks import SaveCheckpoint
from hookloop.short_runs.task import TrainingTask
from hookloop.short_runs.try_out import try_out
from hookloop.short_runs.verify_hooks import verify_hooks
from hookloop.short_runs.verify_resume import Verification


class Drawing(Dataset):
    """Draws from generators of its own and of the process, and counts what was read."""

    def __init__(self) -> None:
        self.own = random.Random(1)
        self.of_numpy = np.random.default_rng(2)
        self.of_torch = torch.Generator().manual_seed(3)
        self.count = 0

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        self.count += 1
        noise = self.own.random() + self.of_numpy.random() + random.random() + np.random.rand()
        sample = torch.rand(4, generator=self.of_torch) + torch.rand(4) + noise
        return sample, index % 3

    def states(self) -> tuple[object, ...]:
        of_torch = self.of_torch.get_state().tolist()
        return self.count, self.own.getstate(), self.of_numpy.bit_generator.state, of_torch


def generators() -> tuple[object, ...]:
    numpy = np.random.get_state()
    return random.getstate(), torch.get_rng_state().tolist(), numpy[1].tolist(), numpy[2:]


def files_of(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    home = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    return home


@contextmanager
def unchanged(folder: Path, scratch: Path) -> Iterator[None]:
    before = files_of(folder), generators()
    yield
    assert (files_of(folder), generators()) == before
    assert not list(scratch.glob("hookloop-*"))


@pytest.mark.parametrize(
    "search", [lambda one: find_lr(one, iters=5), lambda one: find_batch(one, most=8)]
)
def test_a_search_beside_a_training(
    tmp_path: Path, scratch: Path, search: Callable[[Trainer], object]
) -> None:
    data, order = Drawing(), torch.Generator().manual_seed(4)
    model = torch.nn.Linear(4, 3)
    trainer = Trainer(
        model,
        train_data=DataLoader(data, batch_size=4, shuffle=True, generator=order),
        loss=torch.nn.functional.cross_entropy,
        optimizer=torch.optim.Adam(model.parameters()),
        max_epochs=1,
        default_hooks={"console": None},
        run_dir=tmp_path / "run",
        seed=0,
    )
    trainer.train()
    own, drawn = data.states(), order.get_state().tolist()
    with unchanged(tmp_path, scratch):
        search(trainer)
    assert (data.states(), order.get_state().tolist()) == (own, drawn)


# --- trainings of a config


@pytest.fixture
def run(project: Path, invoke: Invoke, scratch: Path) -> Path:
    """A run that was trained; its config is tried, verified and reproduced."""
    result = invoke("train", "config.yaml", "--run-dir", "runs/a")
    assert result.exit_code == 0, result.output
    return project / "runs/a"


def test_a_trial(run: Path, project: Path, scratch: Path, tmp_path_factory) -> None:
    place = tmp_path_factory.mktemp("trial")
    config = load(run)
    with unchanged(project, scratch):
        trial = try_out(
            lambda run_dir, resume: arguments(config, run_dir=run_dir, resume=resume), place
        )
    assert trial.is_restored, trial.differences


def test_a_short_run_from_a_checkpoint(run: Path, project: Path, scratch: Path) -> None:
    config = load(run)

    def make(run_dir: Path) -> dict[str, object]:
        return arguments(config, run_dir=run_dir)

    with unchanged(project, scratch):
        whole = short_run(make, iters=6)
        again = short_run(make, iters=6, start=run / "epoch_1.pth")
    assert (whole.iters, again.iters) == (6, 6)
    assert all(map(torch.equal, *(list(one.state["model"].values()) for one in (whole, again))))
    assert again.outcome.run_dir is not None and not Path(again.outcome.run_dir).exists()


def test_a_short_run_says_that_it_did_not_reach_its_iteration(run: Path, scratch: Path) -> None:
    config = load(run)

    def make(run_dir: Path) -> dict[str, object]:
        return arguments(config, run_dir=run_dir)

    with pytest.raises(HookloopError, match="after 8 iterations, before iteration 9"):
        short_run(make, iters=9)
    assert short_run(make, iters=9, may_end_early=True).iters == 8
    # A limit that the checkpoint has passed: a Trainer completes at once, with nothing done.
    with pytest.raises(HookloopError, match="made no iteration"):
        short_run(make, iters=3, start=run / "epoch_1.pth", may_end_early=True)
    assert not list(scratch.glob("hookloop-*"))


def test_hooks_of_a_short_run_are_left_out_by_reason(run: Path) -> None:
    config = load(run)
    short = short_run(
        lambda run_dir: arguments(config, run_dir=run_dir),
        iters=2,
        leave_out=lambda hook: "it saves" if isinstance(hook, SaveCheckpoint) else None,
    )
    assert short.left_out == {"checkpoint": "it saves"}
    assert "checkpoint" not in [hook.name for hook in short.trainer.run.hooks]


@pytest.mark.slow
def test_a_run_that_is_trained_again(
    run: Path,
    project: Path,
    scratch: Path,
    invoke: Invoke,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    new = str(tmp_path_factory.mktemp("new") / "run")
    with unchanged(project, scratch):
        result = invoke("reproduce", str(run), "--run-dir", new)
        assert result.exit_code == 0, result.output


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("work", ["verify-resume", "verify-hooks"])
def test_what_is_verified(
    run: Path, project: Path, scratch: Path, tmp_path_factory, work: str
) -> None:
    place = str(tmp_path_factory.mktemp("verified") / "run")
    overrides = ("default_hooks={console: null, checkpoint: null}",)
    task = TrainingTask(work, str(run), overrides, (), place, 6)
    with unchanged(project, scratch):
        if work == "verify-hooks":
            found = verify_hooks(MODULE, task, print)
            assert found.own == "" and found.undeclared == []
        else:
            assert not Verification(MODULE, task).run(1).differences
