import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop.hooks import SnapshotMemory
from hookloop.parallel.world import World


def test_without_a_gpu_it_says_that_there_is_nothing_to_see(tmp_path, caplog):
    trainer = make_trainer(hooks=[SnapshotMemory(at=[1])], run_dir=tmp_path)
    assert trainer.train().status == "completed"
    assert caplog.text.count("no snapshot is written") == 1
    assert not list(tmp_path.glob("*.pickle"))


@pytest.fixture
def cuda(monkeypatch):
    """The calls that reach torch, in place of those of a GPU, with the signatures of torch."""
    calls = []
    for name in ("_record_memory_history", "_dump_snapshot"):
        signature = inspect.signature(getattr(torch.cuda.memory, name))

        def call(*args, name=name, signature=signature, **options):
            bound = signature.bind(*args, **options).arguments
            calls.append((name, dict(bound)))
            if name == "_dump_snapshot":
                Path(bound["filename"]).write_bytes(b"snapshot")

        monkeypatch.setattr(torch.cuda.memory, name, call)
    return calls


def run_of(tmp_path, iteration=0, rank=0):
    return SimpleNamespace(
        device=torch.device("cuda"), dir=tmp_path, world=World(rank, 2),
        progress=SimpleNamespace(iter=iteration),
    )  # fmt: skip


def drive(hook, tmp_path, iterations=4, error=None, **options):
    run = run_of(tmp_path, **options)
    hook.before_train(run)
    for _ in range(iterations):
        run.progress.iter += 1
        hook.after_train_iter(run)
    if error is not None:
        hook.on_exception(run, error)
    hook.after_run(run)
    return sorted(path.name for path in tmp_path.iterdir())


def test_snapshots_are_written_and_recording_ends_after_the_last(cuda, tmp_path):
    assert drive(SnapshotMemory(at=[1, 3], on_oom=False), tmp_path) == [
        "memory_iter_1.pickle", "memory_iter_3.pickle",
    ]  # fmt: skip
    assert [name for name, _ in cuda] == [
        "_record_memory_history", "_dump_snapshot", "_dump_snapshot", "_record_memory_history",
    ]  # fmt: skip
    assert cuda[-1][1] == {"enabled": None}


def test_running_out_of_memory_is_written_by_each_rank(cuda, tmp_path):
    error = torch.OutOfMemoryError("CUDA out of memory")
    assert drive(SnapshotMemory(at=[]), tmp_path, error=error, rank=1) == [
        "memory_oom_rank_1.pickle"
    ]
    assert cuda[-1] == ("_record_memory_history", {"enabled": None})


def test_another_error_writes_nothing(cuda, tmp_path):
    assert drive(SnapshotMemory(at=[9]), tmp_path, error=ValueError()) == []


def test_a_resumed_run_that_is_past_the_last_records_nothing(cuda, tmp_path):
    assert drive(SnapshotMemory(at=[2], on_oom=False), tmp_path, iteration=5) == []
    assert cuda == []


@pytest.mark.parametrize("options", [{"at": [0]}, {"at": [], "on_oom": False}, {"events": 0}])
def test_wrong_arguments_are_rejected(options):
    with pytest.raises(HookError):
        SnapshotMemory(**options)
