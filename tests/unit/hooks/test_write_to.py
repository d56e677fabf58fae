import logging

import pytest
from tests.readback import jsonl_points
from tests.tiny import make_classifier, make_trainer

from hookloop import Hook
from hookloop.errors import ArgumentError, HookError, MetricError
from hookloop.hooks import ComputeStats, RecordTimes, SaveCheckpoint, WriteTo
from hookloop.writers.base import Writer
from hookloop.writers.jsonl import JsonLines
from hookloop.writers.records import Config, Image, Scalars, Text


class Keeping(Writer):
    def __init__(self):
        self.records = []
        self.is_open = True

    def write(self, records):
        self.records += records

    def close(self):
        self.is_open = False

    def scalars(self, phase, span):
        return [
            r for r in self.records if isinstance(r, Scalars) and (r.phase, r.span) == (phase, span)
        ]


def test_numbers_are_written_at_the_interval_and_after_each_epoch_and_evaluation():
    kept = Keeping()
    trainer = make_classifier(hooks=[WriteTo(kept, every=2)], max_epochs=2)
    trainer.train()
    trainer.test()
    assert [record.step for record in kept.scalars("train", "iter")] == [2, 4, 6]
    assert [(r.step, r.epoch) for r in kept.scalars("train", "epoch")] == [(3, 1), (6, 2)]
    assert [record.step for record in kept.scalars("val", "epoch")] == [3, 6]
    (test,) = kept.scalars("test", "epoch")
    assert set(test.values) == {"test/loss", "test/accuracy"}
    assert set(kept.scalars("train", "iter")[0].values) == {"train/loss", "lr"}


def test_values_put_at_the_end_of_an_epoch_are_written_with_it():
    kept = Keeping()
    make_classifier(
        hooks=[ComputeStats({"loss": ["max"]}), WriteTo(kept, every=1)], max_epochs=2
    ).train()
    assert "train/loss/max" in kept.scalars("train", "epoch")[0].values
    assert "val/loss/max" in kept.scalars("val", "epoch")[0].values
    # A statistic of the last epoch is not a number of a recent iteration.
    assert all("train/loss/max" not in record.values for record in kept.scalars("train", "iter"))


def test_only_the_chosen_metrics_are_written():
    kept = Keeping()
    hooks = [RecordTimes(), WriteTo(kept, every=1, metrics=["*/loss"])]
    make_classifier(hooks=hooks).train()
    assert {name for r in kept.records for name in r.values} == {
        "train/loss",
        "train_epoch/loss",
        "val/loss",
    }


def test_an_unknown_metric_lists_those_that_exist():
    with pytest.raises(MetricError, match="'val/acuracy'.*'val/accuracy'.*val/loss"):
        make_classifier(hooks=[WriteTo(Keeping(), metrics=["val/acuracy"])]).check()


def test_a_name_instead_of_a_list_is_rejected():
    with pytest.raises(ArgumentError, match=r"Write \['val/loss'\]"):
        WriteTo(Keeping(), metrics="val/loss")


def test_any_hook_can_emit_records_even_before_training():
    class Emit(Hook):
        def before_run(self, run):
            run.emit(Text("note", "early"))

        def after_train_iter(self, run):
            run.emit(Image("sample", [[0.0]]))

    kept, other = Keeping(), Keeping()
    hooks = {"emit": Emit(), "one": WriteTo(kept), "other": WriteTo(other)}
    make_trainer(hooks=hooks).train()
    for writer in (kept, other):
        assert [r.text for r in writer.records if isinstance(r, Text)] == ["early"]
        assert [r.step for r in writer.records if isinstance(r, Image)] == [1, 2, 3]


def test_the_config_is_the_first_record():
    kept = Keeping()
    make_trainer(hooks=[WriteTo(kept)], setup={"config": {"lr": 0.1}}).train()
    assert kept.records[0] == Config({"lr": 0.1})


def test_the_users_writer_stays_open_and_one_from_a_function_is_closed():
    own, created = Keeping(), Keeping()
    hooks = {"own": WriteTo(own), "created": WriteTo(lambda run: created)}
    make_trainer(hooks=hooks).train()
    assert (own.is_open, created.is_open) == (True, False)


def test_everything_is_written_when_the_run_fails(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 3:
                raise RuntimeError("boom")

    write = WriteTo(lambda run: JsonLines(run.dir / "own.jsonl"), every=1)
    with pytest.raises(RuntimeError, match="boom"):
        make_trainer(hooks=[Fail(), write], run_dir=tmp_path).train()
    assert [step for step, _ in jsonl_points(tmp_path / "own.jsonl", "train/loss")] == [1, 2, 3]


def test_a_failing_writer_warns_once_and_the_run_completes(caplog):
    class Broken(Writer):
        name = "broken"

        def write(self, records):
            raise ConnectionError("no route to host")

    with caplog.at_level(logging.WARNING, "hookloop"):
        outcome = make_trainer(hooks=[WriteTo(Broken(), every=1)], max_epochs=3).train()
    assert outcome.status == "completed"
    assert len(caplog.messages) == 1 and "'broken'" in caplog.text


def test_a_writer_that_cannot_be_opened_is_reported_before_training(tmp_path):
    (tmp_path / "file").touch()
    write = WriteTo(lambda run: JsonLines(tmp_path / "file" / "x.jsonl"))
    trainer = make_trainer(hooks=[write])
    with pytest.raises(HookError, match="WriteTo cannot write: .*Not a directory"):
        trainer.train()
    assert trainer.run.progress.iter == 0


def test_a_resumed_run_continues_at_its_step(tmp_path):
    def hooks():
        return [WriteTo(lambda run: JsonLines(run.dir / "own.jsonl"), every=1), SaveCheckpoint()]

    make_trainer(hooks=hooks(), run_dir=tmp_path).train()
    make_trainer(hooks=hooks(), run_dir=tmp_path, resume=True, max_epochs=2).train()
    steps = [step for step, _ in jsonl_points(tmp_path / "own.jsonl", "lr")]
    assert steps == [1, 2, 3, 4, 5, 6]
