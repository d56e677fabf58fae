from math import inf, nan

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import HookError, MetricError
from hookloop.hooks import ActOnPlateau, ComputeStats, StopOnPlateau


class Follow:
    """A metric that takes the values of a list, one per validation."""

    def __init__(self, values):
        self.values = list(values)
        self.next = -1

    def reset(self):
        self.next += 1

    def update(self, output, targets):
        pass

    def compute(self):
        return self.values[self.next]


def train(hook, values, tmp_path, metric="score", **options):
    options = {"max_epochs": len(values), "val_data": make_data(4)} | options
    trainer = make_trainer(
        hooks=[hook], metrics={metric: Follow(values)}, run_dir=tmp_path, **options
    )
    return trainer.train(), trainer.run.progress.epoch


@pytest.mark.parametrize(
    ("options", "values", "stops_after"),
    [
        ({"patience": 5}, [0.1] * 9, 6),
        ({"patience": 2}, [0.1] * 9, 3),
        ({"patience": 2}, [0.1, 0.2, 0.2, 0.3, 0.3, 0.3, 0.3], 6),
        ({"patience": 1, "min_delta": 0.15}, [0.1, 0.3, 0.4, 0.9], 3),
        ({"patience": 2, "mode": "less"}, [3, 2, 2.5, 2.1, 1], 4),
        ({"patience": 2, "mode": "min"}, [3, 2, 1, 0.5, 0], None),
        ({"threshold": 0.8}, [0.1, 0.5, 0.8, 0.9], 3),
        ({"threshold": 0.2, "mode": "less"}, [0.5, 0.2, 0.1], 2),
        ({"diverged": 0.05}, [0.1, 0.05, 0.04, 0.3], 3),
        ({"diverged": 5.0, "mode": "less"}, [3, 4, 5, 6, 1], 4),
        ({"diverged": 5.0, "mode": "less", "check_finite": False}, [3, nan, 1], 2),
        ({"diverged": 5.0, "mode": "less", "begin": "3 epochs"}, [9, 8, 4, 6, 1], 4),
        ({"patience": 2, "begin": "3 epochs"}, [0.9, 0.1, 0.1, 0.2, 0.2, 0.2, 0.3], 6),
        ({"patience": 1, "begin": 9}, [0.5, 0.1, 0.1, 0.2], None),
        ({"threshold": 0.5, "begin": "2 epochs"}, [0.6, 0.4, 0.6, 0.6], 3),
        ({"begin": "3 epochs"}, [0.1, nan, 0.3], 2),
        ({}, [0.1, nan, 0.3], 2),
        ({}, [0.1, inf, 0.3], 2),
    ],
)
def test_it_stops_when_the_metric_has_stalled_or_is_good_enough(
    options, values, stops_after, tmp_path
):
    hook = StopOnPlateau("val/score", **({"mode": "greater"} | options))
    outcome, epochs = train(hook, values, tmp_path)
    assert epochs == (stops_after or len(values))
    assert outcome.status == ("stopped" if stops_after else "completed")


def test_the_reason_names_the_metric_and_its_best(tmp_path):
    hook = StopOnPlateau("val/accuracy", patience=2)
    outcome, _ = train(hook, [0.5, 0.75, 0.5, 0.5], tmp_path, "accuracy")
    assert outcome.reason == "val/accuracy has not improved on 0.75 for 2 validations"


@pytest.mark.parametrize("first", [nan, inf])
def test_what_is_not_finite_is_never_the_best_and_never_blocks(first, tmp_path):
    hook = StopOnPlateau("val/score", mode="greater", patience=3, check_finite=False)
    _, epochs = train(hook, [first, 0.1, 0.2, 0.3, nan, nan, nan, nan], tmp_path)
    assert (epochs, hook.best) == (7, 0.3)


def test_a_metric_that_stays_nan_is_a_plateau(tmp_path):
    patient = StopOnPlateau("val/score", mode="greater", patience=2, check_finite=False)
    assert train(patient, [nan] * 5, tmp_path / "a")[1] == 2
    windows = StopOnPlateau("val/score", mode="less", long_term=4, short_term=2, check_finite=False)
    assert train(windows, [1, nan, nan, nan], tmp_path / "b")[1] == 3


def test_windows_compare_the_recent_mean_with_the_longer_one(tmp_path):
    # Means of the last two and the last four: 4 4, 3.5 3.5, 2.5 3, 2 2.75, 2.5 2.5, 3.5 2.75.
    hook = StopOnPlateau("val/score", mode="less", long_term=4, short_term=2)
    outcome, epochs = train(hook, [4, 3, 2, 2, 3, 4], tmp_path)
    assert epochs == 6
    assert outcome.reason == "val/score is worse over 2 validations than over 4"


def test_patience_counts_validations_within_an_epoch(tmp_path):
    hook = StopOnPlateau("val/score", mode="greater", patience=2)
    options = {"max_epochs": 5, "val_every": 1}
    outcome, epochs = train(hook, [1, 1, 1, 1], tmp_path, **options)
    assert (outcome.status, epochs) == ("stopped", 1)


def test_it_may_watch_the_training_loss(tmp_path):
    class Frozen(Hook):
        def before_update(self, run):
            for parameter in run.model.parameters():
                parameter.grad = None

    hook = StopOnPlateau("train/loss", patience=2, min_delta=1e-9)
    make = {"hooks": [hook, Frozen()], "max_epochs": 9, "run_dir": tmp_path}
    trainer = make_trainer(**make)
    assert trainer.train().status == "stopped"
    assert trainer.run.progress.epoch == 3


def test_it_may_watch_a_statistic_that_a_hook_computes(tmp_path):
    model = make_model()
    trainer = make_trainer(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        hooks=[StopOnPlateau("val/loss/max", patience=1), ComputeStats({"loss": ["max"]})],
        val_data=make_data(4),
        val_every="2 epochs",
        max_epochs=9,
        run_dir=tmp_path,
    )
    assert trainer.train().status == "stopped"
    assert trainer.run.progress.epoch == 4  # the epochs without a validation do not count


def resumed(values, cut, tmp_path):
    """Train to a cut, continue in a new trainer, and return the epochs done in all."""

    class Save(Hook):
        def after_epoch(self, run):
            run.save("here.pth")

    def trainer(max_epochs, values, **options):
        hooks = [StopOnPlateau("val/score", mode="greater", patience=3), Save()]
        return make_trainer(
            hooks=hooks,
            metrics={"score": Follow(values)},
            val_data=make_data(4),
            max_epochs=max_epochs,
            run_dir=tmp_path,
            **options,
        )

    trainer(cut, values).train()
    after = trainer(20, values[cut:], resume=True)
    after.train()
    return after.run.progress.epoch


def test_patience_and_best_survive_a_resume(tmp_path):
    values = [0.5, 0.9, 0.6, 0.7, 0.8, 0.8, 0.8, 0.8]  # alone, 0.7 and 0.8 would be improvements
    assert (
        train(StopOnPlateau("val/score", mode="greater", patience=3), values, tmp_path / "a")[1]
        == 5
    )
    assert resumed(values, 3, tmp_path / "b") == 5


def test_a_metric_that_nothing_produces_is_rejected_with_those_that_exist():
    hook = StopOnPlateau("val/accurracy", mode="greater")
    trainer = make_trainer(hooks=[hook], val_data=make_data(4), metrics={"accuracy": Follow([1])})
    with pytest.raises(MetricError, match="'val/accuracy'"):
        trainer.check()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "loss"}, "has no phase. Did you mean 'val/loss'"),
        ({"metric": "val_loss"}, "has no phase. Did you mean 'val/loss'"),
        ({"metric": "val/acuracy"}, "Did you mean 'val/accuracy'"),
        ({"metric": "val/zebra"}, "[Gg]ive mode='greater' or mode='less'"),
        ({"mode": "lower"}, "write 'greater' or 'less'"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"min_delta": -1}, "min_delta must be 0 or more"),
        ({"long_term": 5}, "long_term and short_term together"),
        ({"long_term": 5, "short_term": 2, "patience": 3}, "either patience"),
        ({"long_term": 5, "short_term": 9}, "must be less than long_term=5"),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message):
    with pytest.raises(HookError, match=message):
        StopOnPlateau(**arguments)


def test_what_a_hook_computes_is_checked_after_every_validation(tmp_path):
    class Look(ActOnPlateau):
        seen = ()

        def act(self, run):
            pass

        def look(self, run, value):
            self.seen += (run.progress.iter,)

    look = Look("val/loss/max")
    make_trainer(
        hooks=[ComputeStats({"loss": ["max"]}, streams=["val"]), look],
        val_data=make_data(4),
        val_every=2,
        max_iters=7,
        data={"epoch_iters": 100},
        train_data=make_data(40),
        run_dir=tmp_path,
    ).train()
    assert look.seen == (2, 4, 6, 7)


def test_a_bound_that_every_value_would_break_is_rejected():
    with pytest.raises(HookError, match="is worse than diverged"):
        StopOnPlateau("val/loss", threshold=5.0, diverged=1.0)
    with pytest.raises(HookError, match="begin counts iterations or epochs"):
        StopOnPlateau("val/loss", begin="5 min")


def test_the_reason_says_that_it_has_diverged(tmp_path):
    hook = StopOnPlateau("val/score", mode="less", diverged=2.0)
    outcome, _ = train(hook, [1.0, 7.0], tmp_path, max_epochs=3)
    assert outcome.reason == "val/score is 7, worse than 2: it has diverged"
