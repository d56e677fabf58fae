import json
import time
from datetime import datetime, timedelta

import pytest
from tests.names import epoch_file, iter_file
from tests.readback import jsonl_points, png
from tests.tiny import make_classifier

from hookloop import Hook
from hookloop.hooks import SaveCheckpoint, WriteMetrics
from hookloop.runs.layout import RunDir
from hookloop.runs.reader import list_runs, summarize
from hookloop.writers.records import Image


def test_lines_summary_and_images_are_in_the_run_directory(tmp_path):
    class Emit(Hook):
        def after_val(self, run):
            run.emit(Image("val/sample", [[0.0, 1.0]]))

    make_classifier(hooks=[Emit(), WriteMetrics(every=2)], run_dir=tmp_path, max_epochs=2).train()
    assert [step for step, _ in jsonl_points(tmp_path / "metrics.jsonl", "val/loss")] == [3, 6]
    assert png(tmp_path / "images/val/sample/00000003.png").tolist() == [[0, 255]]
    summary = RunDir(tmp_path).read_summary()
    assert summary["status"] == "completed" and summary["best"]["val/loss"]["epoch"] == 2


def test_a_nan_is_never_best(tmp_path):
    class Spoil(Hook):
        def after_val_epoch(self, run, metrics):
            run.metrics.put("val/f1", float("nan") if run.progress.epoch == 1 else 0.5)

    make_classifier(hooks=[Spoil(), WriteMetrics()], run_dir=tmp_path, max_epochs=2).train()
    best = RunDir(tmp_path).read_summary()["best"]["val/f1"]
    assert (best["value"], best["epoch"]) == (0.5, 2)


@pytest.mark.parametrize("checkpoint", [iter_file(2), epoch_file(1), iter_file(4)])
def test_a_resumed_run_writes_the_same_lines(tmp_path, checkpoint):
    def train(name, **options):
        hooks = {
            "metrics": WriteMetrics(every=1),
            "iters": SaveCheckpoint(every="2 iters", keep=None),
            "epochs": SaveCheckpoint(every="1 epoch", keep=None),
        }
        make_classifier(hooks=hooks, run_dir=tmp_path / name, max_epochs=2, **options).train()

    def lines(name):
        text = (tmp_path / name / "metrics.jsonl").read_text(encoding="utf-8")
        return [{**json.loads(line), "time": 0} for line in text.splitlines()]

    train("whole")
    train("parts")
    train("parts", resume=tmp_path / "parts" / checkpoint)
    assert lines("parts") == lines("whole")


def test_a_rarely_put_number_is_not_averaged_with_old_ones(tmp_path):
    class Seldom(Hook):
        def after_train_iter(self, run):
            if run.progress.iter % 2 == 0:
                run.metrics.put("train/memory", run.progress.iter)

    hooks = [Seldom(), WriteMetrics(every=4)]
    make_classifier(hooks=hooks, run_dir=tmp_path, data={"epoch_iters": 12}, max_iters=12).train()
    points = jsonl_points(tmp_path / "metrics.jsonl", "train/memory")
    assert points[:3] == [(4, 3.0), (8, 7.0), (12, 11.0)]


def test_an_evaluation_adds_its_numbers_and_changes_no_others(tmp_path):
    def trainer(**options):
        hooks = {
            "metrics": WriteMetrics(every=1),
            "epochs": SaveCheckpoint(every="1 epoch", keep=None),
        }
        return make_classifier(hooks=hooks, run_dir=tmp_path, max_epochs=3, **options)

    trainer().train()
    before = RunDir(tmp_path).read_summary()
    trainer(resume=tmp_path / epoch_file(1)).test()
    after = RunDir(tmp_path).read_summary()
    assert all(after["metrics"].pop(f"test/{name}") for name in ("loss", "accuracy"))
    assert after | {"written": None} == before | {"written": None}
    trainer(resume=tmp_path / epoch_file(1)).validate()
    after = RunDir(tmp_path).read_summary()
    assert after["best"] == before["best"]
    assert after["metrics"]["val/loss"] > before["metrics"]["val/loss"]
    assert after["metrics"]["train/loss"] == before["metrics"]["train/loss"]


def test_a_damaged_summary_does_not_switch_the_hook_off(tmp_path):
    make_classifier(hooks=[SaveCheckpoint(), WriteMetrics()], run_dir=tmp_path).train()
    (tmp_path / "summary.json").write_bytes(b"{\xff")
    hooks = [SaveCheckpoint(), WriteMetrics()]
    make_classifier(hooks=hooks, run_dir=tmp_path, resume=True, max_epochs=2).train()
    assert RunDir(tmp_path).read_summary()["status"] == "completed"
    assert [one["epoch"] for one in RunDir(tmp_path).read_metrics()][-1] == 2


def test_the_summary_of_a_running_run_has_best_values_and_time(tmp_path):
    class Look(Hook):
        def after_epoch(self, run):
            seen.append(summarize(RunDir(run.dir)))

    seen = []
    make_classifier(hooks=[WriteMetrics(), Look()], run_dir=tmp_path, max_epochs=2).train()
    assert [run.status for run in seen] == ["running", "running"]
    assert [run.epochs for run in seen] == [0, 1] or [run.epochs for run in seen] == [1, 2]
    assert all(run.best is not None and run.best.metric == "val/accuracy" for run in seen)
    assert all(run.seconds is not None and run.seconds < 60 for run in seen)


def test_what_the_summary_has_is_among_the_lines(tmp_path):
    """A process that is killed at any moment has lost no line of what its summary shows."""

    class Look(Hook):
        def after_val(self, run):
            directory = RunDir(run.dir)
            lines = jsonl_points(directory.metrics_file, "val/accuracy")
            seen.append((directory.read_summary()["iter"], lines))

    seen = []
    make_classifier(hooks=[WriteMetrics(), Look()], run_dir=tmp_path, max_epochs=3).train()
    assert len(seen) == 3
    assert all(lines[-1][0] == done for done, lines in seen)


def test_the_time_of_a_run_excludes_pauses_and_later_evaluations(tmp_path):
    def trainer(**options):
        return make_classifier(
            hooks=[WriteMetrics(), SaveCheckpoint()], run_dir=tmp_path, **options
        )

    def take_back(hours, seconds):
        """Pretend that the summary was written hours ago."""
        directory = RunDir(tmp_path)
        summary = directory.read_summary()
        for key in ("started", "ended", "written"):
            before = datetime.fromisoformat(summary[key]) - timedelta(hours=hours)
            summary[key] = before.isoformat()
        directory.write_summary({**summary, "seconds": seconds})

    trainer().train()
    take_back(hours=5, seconds=100.0)
    trainer(resume=True, max_epochs=2).train()
    assert 100 < summarize(RunDir(tmp_path)).seconds < 160
    take_back(hours=5, seconds=200.0)  # More than its checkpoint has, as in every summary.
    trainer(resume=True).test()
    assert summarize(RunDir(tmp_path)).seconds == 200


def test_a_summary_that_cannot_be_updated_does_not_stop_the_numbers(tmp_path, caplog):
    class Block(Hook):
        def after_train_epoch(self, run):
            (run.dir / "summary.json").unlink(missing_ok=True)
            (run.dir / "summary.json").mkdir(exist_ok=True)

        def after_epoch(self, run):
            (run.dir / "summary.json").rmdir()

    hooks = [Block(), WriteMetrics(every=1)]
    outcome = make_classifier(hooks=hooks, run_dir=tmp_path, max_epochs=3).train()
    assert outcome.disabled == ()
    assert sum("summary.json" in record.message for record in caplog.records) == 1
    assert RunDir(tmp_path).read_summary()["status"] == "completed"
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) >= 9


@pytest.mark.parametrize(("rule", "epoch"), [("greater", 2), ("less", 1)])
def test_the_best_follows_the_rule_of_the_checkpoints(tmp_path, rule, epoch):
    class Put(Hook):
        writes = ("val/zebra", "val/accuracy_gap")

        def after_val_epoch(self, run, metrics):
            run.metrics.put("val/zebra", float(run.progress.epoch))
            run.metrics.put("val/accuracy_gap", float(run.progress.epoch))

    best = ["val/zebra", "val/accuracy_gap"]
    hooks = [Put(), WriteMetrics(), SaveCheckpoint(best=best, rule=rule)]
    make_classifier(hooks=hooks, run_dir=tmp_path, max_epochs=2).train()
    summary = RunDir(tmp_path).read_summary()
    assert summary["main_metric"] == "val/zebra"
    assert [summary["best"][name]["epoch"] for name in best] == [epoch, epoch]
    assert summarize(RunDir(tmp_path)).best.metric == "val/zebra"


def test_runs_of_the_same_second_are_listed_in_their_order(tmp_path):
    names = ["second", "first", "third"]
    for name in names:
        make_classifier(hooks=[WriteMetrics()], run_dir=tmp_path / name).train()
        time.sleep(0.002)
    assert [run.name for run in list_runs(tmp_path)] == names
