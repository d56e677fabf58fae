import logging

import pytest
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer

from hookloop.engine.hook import Hook
from hookloop.hooks import RecordHookTimes


class Busy(Hook):
    draws_random_numbers = False

    def after_train_iter(self, run):
        sum(range(20_000))

    def after_val_epoch(self, run, metrics):
        pass


def test_each_hook_is_measured_at_each_of_its_points(tmp_path):
    class Idle(Hook):
        def before_train_iter(self, run):
            pass

    hook = RecordHookTimes()
    trainer = make_trainer(
        hooks=[Busy(), Idle(), hook], max_epochs=2, val_data=make_data(4), run_dir=tmp_path
    )
    trainer.train()
    lines = (tmp_path / "hook_times.txt").read_text().splitlines()
    calls = {tuple(line.split()[:2]): int(line.split()[2]) for line in lines[1:]}
    assert calls["busy", "after_train_iter"] == 6
    assert calls["busy", "after_val_epoch"] == 2
    assert calls["idle", "before_train_iter"] == 6
    latest = trainer.run.metrics.latest
    assert latest("train/hook_time/busy") > latest("train/hook_time/idle") > 0


def test_a_test_leaves_the_table_of_the_training(tmp_path):
    trainer = make_trainer(
        hooks=[Busy(), RecordHookTimes()], data={"test": make_data(4)}, run_dir=tmp_path
    )
    trainer.train()
    before = (tmp_path / "hook_times.txt").read_text(encoding="utf-8")
    trainer.test()
    assert (tmp_path / "hook_times.txt").read_text(encoding="utf-8") == before
    assert "after_train_iter" in before
    tested = (tmp_path / "hook_times_test.txt").read_text(encoding="utf-8")
    assert "before_test" in tested and "after_train_iter" not in tested


def test_a_failure_still_names_its_hook_and_the_measuring_continues_without_a_disabled_one(
    tmp_path, caplog
):
    class Frail(Hook):
        on_error = "disable"

        def after_train_iter(self, run):
            raise ZeroDivisionError("frail")

    hook = RecordHookTimes()
    trainer = make_trainer(hooks=[hook, Frail(), Busy()], max_epochs=2, run_dir=tmp_path)
    with caplog.at_level(logging.WARNING):
        trainer.train()
    assert "The hook 'frail' failed at after_train_iter" in caplog.text
    rows = [line.split() for line in hook.table().splitlines()[1:]]
    calls = {(row[0], row[1]): int(row[2]) for row in rows}
    assert calls["frail", "after_train_iter"] == 1
    assert calls["busy", "after_train_iter"] == 6


def test_a_run_without_it_has_plain_calls(tmp_path):
    busy = Busy()
    trainer = make_trainer(hooks=[busy], run_dir=tmp_path)
    trainer.train()
    # The hook's own method, without a wrapper: what is not measured costs nothing.
    assert list(trainer.run._plan.after_train_iter) == [(busy.after_train_iter, busy)]


def test_the_table_can_be_left_out_and_the_training_is_the_same(tmp_path):
    plain, measured = make_model(), make_model()
    make_trainer(model=plain, max_epochs=2).train()
    make_trainer(
        model=measured, hooks=[RecordHookTimes(file=None)], max_epochs=2, run_dir=tmp_path
    ).train()
    assert_same_bits(plain, measured)
    assert not (tmp_path / "hook_times.txt").exists()


@pytest.mark.parametrize(("evaluate", "phase"), [("validate", "val"), ("test", "test")])
def test_evaluations_alone_are_measured_too(evaluate, phase, tmp_path):
    hook = RecordHookTimes()
    trainer = make_trainer(
        hooks=[hook, Busy()], val_data=make_data(4), data={"test": make_data(4)}, run_dir=tmp_path
    )
    getattr(trainer, evaluate)()
    assert (tmp_path / f"hook_times_{phase}.txt").is_file()
