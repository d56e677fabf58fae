"""The pointer names the newest durable checkpoint, whichever store is done first."""

import logging
from pathlib import Path

import pytest
from tests.names import iter_file
from tests.tiny import make_trainer

from hookloop.checkpoint.saving.checkpoints import LastPointer
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.hooks import SaveCheckpoint
from hookloop.runs.checkpoint_names import LAST
from hookloop.runs.layout import RunDir


@pytest.mark.parametrize("slow_is_own", [False, True])
def test_a_slow_store_does_not_undo_the_pointer_to_a_newer_checkpoint(
    tmp_path: Path, slow_is_own: bool
) -> None:
    run_dir = tmp_path / "run"
    slow, fast = CheckpointStore(run_dir), CheckpointStore(tmp_path / "other")
    if not slow_is_own:
        slow, fast = fast, slow
    pointer = LastPointer()
    orders = [pointer.next_order() for _ in range(3)]
    pointer.mark(orders[1], fast, iter_file(2), run_dir)
    pointer.mark(orders[0], slow, iter_file(1), run_dir)
    newest = RunDir(run_dir).last_pointer
    assert newest is not None and newest.name == iter_file(2)
    pointer.mark(orders[2], slow, iter_file(3), run_dir)
    newest = RunDir(run_dir).last_pointer
    assert newest is not None and newest.name == iter_file(3)


def test_a_store_elsewhere_keeps_a_pointer_of_its_own(tmp_path: Path) -> None:
    run_dir, store = tmp_path / "run", CheckpointStore(tmp_path / "other")
    pointer = LastPointer()
    older, newer = pointer.next_order(), pointer.next_order()
    pointer.mark(newer, CheckpointStore(run_dir), iter_file(2), run_dir)
    pointer.mark(older, store, iter_file(1), run_dir)
    assert store.last() == iter_file(1)
    assert (run_dir / LAST).read_text() == "iter_2.pth\n"


def test_two_stores_save_every_iteration_of_one_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    saves = {
        name: SaveCheckpoint(every="1 iters", keep=2, directory=tmp_path / name) for name in "ab"
    }
    trainer = make_trainer(max_epochs=10, run_dir=tmp_path / "run", hooks=saves)
    trainer.train()
    assert not caplog.records
    newest = RunDir(tmp_path / "run").last_pointer
    assert newest is not None and newest.name == iter_file(trainer.run.progress.iter)
    assert list((tmp_path / "run").glob(".*.tmp*")) == []
