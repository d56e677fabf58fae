"""When to validate: one interval for all validation data, or one for each stream."""

import json

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer
from tests.unit.trainer.test_resume import Augmented, Cut, assert_same_end, make
from torch.utils.data import DataLoader

from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook
from hookloop.engine.progress import Progress
from hookloop.errors import DataError, MetricError
from hookloop.every import Every
from hookloop.hooks import SaveCheckpoint, StepSchedules, StopOnPlateau, WriteMetrics
from hookloop.lr_schedule import Schedule
from hookloop.parallel.world import World
from hookloop.trainer.val_intervals import StreamValidation, Validation, make_validation


def validation(every, **options):
    return Validation(Every.parse(every), **options)


def at(iteration=0, epoch=0, **options):
    return Progress(iteration, epoch, **options)


def test_an_interval_in_iterations_asks_after_an_iteration_and_never_after_an_epoch():
    due = validation("3 iters", begin=6).due_after_iter
    assert [n for n in range(1, 13) if due(at(n))] == [6, 9, 12]
    assert not any(validation("3 iters").due_after_epoch(at(3 * n, n)) for n in range(1, 5))


def test_an_interval_in_epochs_asks_after_an_epoch_and_never_after_an_iteration():
    times = validation("2 epochs", begin=3)
    assert times.due_after_iter is None
    assert [n for n in range(1, 9) if times.due_after_epoch(at(5 * n, n))] == [4, 6, 8]


def test_an_interval_in_time_begins_again_with_each_validation(monkeypatch):
    now = 100.0
    monkeypatch.setattr("hookloop.trainer.val_intervals.monotonic", lambda: now)
    times, progress = validation("1 minute"), at(5)
    due = times.due_after_iter
    assert not due(progress)
    now = 160.0
    assert due(progress)
    times.note(progress)
    assert not due(progress) and progress.validated_at == 5


def test_nothing_is_due_twice_at_one_iteration():
    times = validation("1 epoch")
    assert times.due_after_epoch(at(5, 1))
    assert not times.due_after_epoch(at(5, 1, validated_at=5))
    assert not times.due_at_end(at(5, 1, max_epochs=1, validated_at=5))


@pytest.mark.parametrize(
    ("every", "begin", "due"),
    [("3 epochs", 0, True), ("3 epochs", 3, False), ("7 iters", 0, True), ("1 hour", 99, True)],
)
def test_a_run_at_its_limit_validates_its_last_state_unless_that_is_too_early(every, begin, due):
    end = at(10, 2, max_epochs=2)
    assert validation(every, begin=begin).due_at_end(end) is due
    assert not validation(every, begin=begin).due_at_end(at(10, 2, max_epochs=3))


def test_without_data_nothing_is_ever_due():
    times = validation("1 iter", at_start=True, enabled=False)
    assert times.due_after_iter is None
    assert not times.due_at_start(at()) and not times.due_at_end(at(3, max_iters=3))


def test_the_start_is_validated_once_and_not_after_a_resume():
    times = validation("1 epoch", at_start=True)
    assert times.due_at_start(at())
    assert not times.due_at_start(at(validated_at=0)) and not times.due_at_start(at(3))
    assert not validation("1 epoch").due_at_start(at())


# --- an interval for each stream ------------------------------------------------------------------

STREAMS = {"small": make_data(4), "full": make_data(8)}


class NoteValidations(Hook):
    """Notes after which iteration which metrics came."""

    def __init__(self):
        self.seen = []

    def after_val_epoch(self, run, metrics):
        self.seen.append((run.progress.iter, sorted(metrics)))


def validated(run_dir, val_every, **options):
    """Train 4 iterations per epoch; return the streams of each validation, by iteration."""
    note = NoteValidations()
    hooks = [note, *options.pop("hooks", [])]
    settings = {"train_data": make_data(16), "val_data": STREAMS, "max_epochs": 3} | options
    make_trainer(hooks=hooks, run_dir=run_dir, val_every=val_every, **settings).train()
    return [(at, [name.split("/")[1] for name in names]) for at, names in note.seen]


def test_each_stream_is_validated_when_it_is_due(tmp_path):
    seen = validated(tmp_path, {"small": "3 iters", "full": "2 epochs"})
    # The end comes by itself: what is not validated there yet.
    assert seen == [
        (3, ["small"]),
        (6, ["small"]),
        (8, ["full"]),
        (9, ["small"]),
        (12, ["small"]),
        (12, ["full"]),
    ]


def test_streams_that_are_due_together_are_one_validation(tmp_path):
    seen = validated(
        tmp_path, {"full": "1 epoch", "small": "1 epoch"}, **{"val_every.at_start": True}
    )
    assert seen == [(at, ["full", "small"]) for at in (0, 4, 8, 12)]


def test_the_begin_is_counted_in_the_unit_of_each_stream(tmp_path):
    seen = validated(tmp_path, {"small": "1 iter", "full": "1 epoch"}, **{"val_every.begin": 3})
    assert [at for at, names in seen if "small" in names] == list(range(3, 13))
    assert [at for at, names in seen if "full" in names] == [12]


def test_a_time_is_an_interval_too(tmp_path):
    seen = validated(tmp_path, {"small": "0.000001 s", "full": "10 h"}, max_epochs=1)
    assert seen == [(1, ["small"]), (2, ["small"]), (3, ["small"]), (4, ["small"]), (4, ["full"])]


def test_samples_are_an_interval_of_a_stream_too(tmp_path):
    every = {"small": "1 epoch", "full": "8 samples"}  # Iterations of 4.
    seen = validated(tmp_path, every, max_epochs=1)
    assert [(at, names) for at, names in seen if "full" in names] == [(2, ["full"]), (4, ["full"])]
    begun = validated(tmp_path / "begun", every, max_epochs=2, **{"val_every.begin": 15})
    assert [at for at, names in begun if "full" in names] == [4, 6, 8]
    assert not [at for at, names in begun if "small" in names]


def test_a_request_of_a_hook_is_for_all_streams_or_for_some(tmp_path):
    class Request(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 1:
                run.validate()
            if run.progress.iter == 2:
                run.validate("small")
            if run.progress.iter == 3:
                run.validate("small")
                run.validate()

    every = {"small": "100 iters", "full": "100 iters"}
    seen = validated(tmp_path, every, hooks=[Request()], max_epochs=1)
    both = ["full", "small"]
    assert seen == [(1, both), (2, ["small"]), (3, both), (4, both)]


def test_a_request_for_an_unknown_stream_names_the_nearest(tmp_path):
    trainer = make_trainer(val_data=STREAMS, run_dir=tmp_path)
    with pytest.raises(DataError, match="'ful'.*'full'"):
        trainer.run.validate("ful")


def test_validate_of_a_trainer_is_for_all(tmp_path):
    every = {"small": 5, "full": 7}
    results = make_trainer(val_data=STREAMS, val_every=every, run_dir=tmp_path).validate()
    assert sorted(results) == ["val/full/loss", "val/small/loss"]


class Look(StopOnPlateau):
    def __init__(self):
        super().__init__("val/full/loss", patience=100)
        self.looked = []

    def look(self, run, value):
        self.looked.append(run.progress.iter)


def test_hooks_do_not_act_on_old_values(tmp_path):
    model, look = make_model(), Look()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=50)
    steps = []
    plateau.step = steps.append
    save = SaveCheckpoint("1 epoch", best="val/full/loss")
    seen = validated(
        tmp_path,
        {"small": "1 iter", "full": "2 epochs"},
        hooks=[look, StepSchedules(), save],
        model=model,
        optimizer=optimizer,
        schedule=Schedule(plateau, metric="val/full/loss"),
        max_epochs=4,
    )
    assert [at for at, names in seen if "full" in names] == look.looked == [8, 16]
    assert len(steps) == 2
    assert list(tmp_path.glob("best_full_loss_epoch_*.pth"))


def test_a_metric_that_no_stream_has_is_still_rejected(tmp_path):
    with pytest.raises(MetricError, match="val/ful/loss"):
        validated(tmp_path, {"small": 1, "full": 2}, hooks=[StopOnPlateau("val/ful/loss")])


def test_checkpoints_have_the_metrics_of_what_was_validated(tmp_path):
    validated(
        tmp_path,
        {"small": "2 iters", "full": "3 epochs"},
        hooks=[SaveCheckpoint("2 iters", keep=None), WriteMetrics()],
    )
    index = CheckpointStore(tmp_path).index.load().values()
    found = {saved.iter: sorted(n for n in saved.metrics if "val" in n) for saved in index}
    assert found[2] == ["val/small/loss"]
    assert found[12] == ["val/full/loss", "val/small/loss"]
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    records = [one for one in map(json.loads, lines) if one["phase"] == "val"]
    assert [one["iter"] for one in records if "val/full/loss" in one] == [12]


@pytest.mark.slow
@pytest.mark.parametrize("cut", [8, 16])
def test_a_cut_at_any_iteration_changes_nothing(tmp_path, cut):
    def options():
        return {
            "val_data": {
                "small": DataLoader(Augmented(4), batch_size=2, shuffle=True),
                "full": DataLoader(Augmented(6), batch_size=2, shuffle=True),
            },
            "val_every": {"small": "2 iters", "full": "2 epochs"},
        }

    with pytest.raises(Cut):
        make(tmp_path / "cut", cut=cut, **options()).train()
    resumed = make(tmp_path / "cut", resume=True, **options())
    resumed.train()
    whole = make(tmp_path / "straight", **options())
    whole.train()
    assert_same_end(resumed, whole)


@pytest.mark.parametrize(
    ("every", "streams", "message"),
    [
        ({"smal": 1, "full": 2}, STREAMS, "'smal', which is not a stream .* Did you mean 'small'"),
        ({"small": 1}, STREAMS, "no interval for the stream full"),
        ({"small": 1}, {"": []}, "no streams with names"),
        ({"small": "often", "full": 1}, STREAMS, r"val_every\['small'\]: 'often' is not"),
    ],
)
def test_what_is_rejected(every, streams, message):
    with pytest.raises(DataError, match=message) as caught:
        make_validation(every, 0, False, streams, World())
    assert caught.value.argument == "val_every"


def test_clocks_of_several_ranks_are_rejected():
    with pytest.raises(DataError, match="does not work on 2 ranks"):
        make_validation({"small": "1 min"}, 0, False, ["small"], World(0, 2))


def test_one_interval_stays_what_it_was():
    assert not isinstance(make_validation("1 epoch", 0, False, STREAMS, World()), StreamValidation)
