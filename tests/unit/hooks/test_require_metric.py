from math import nan

import pytest
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import RequireMetric
from hookloop.hooks.ending.require_metric import RequirementNotMetError


def trainer(scores, tmp_path, max_epochs=6, **options):
    resume = options.pop("resume", None)
    scores = iter(scores)
    return make_trainer(
        hooks=[RequireMetric("val/score", **options), Save()],
        metrics={"score": lambda output, targets: next(scores)},
        val_data=make_data(4),
        max_epochs=max_epochs,
        run_dir=tmp_path,
        resume=resume,
    )


class Save(Hook):
    def after_epoch(self, run):
        run.save("here.pth")


def test_a_run_that_is_good_enough_in_time_continues(tmp_path):
    outcome = trainer([0.1, 0.6, 0.1, 0.1, 0.1, 0.1], tmp_path, above=0.5, by="3 epochs").train()
    assert outcome.status == "completed"


def test_a_run_that_is_not_fails_at_that_moment(tmp_path):
    run = trainer([0.1, 0.5, nan], tmp_path, above=0.5, by="3 epochs")
    with pytest.raises(RequirementNotMetError, match="above 0.5 within.*3 epochs"):
        run.train()
    assert run.run.progress.epoch == 3
    assert run.run.outcome.exit_code == 1


def test_it_can_stop_instead_of_failing(tmp_path):
    run = trainer([3.0, 2.0, 2.0], tmp_path, below=1, by=6, otherwise="stop")
    outcome = run.train()
    assert (outcome.status, outcome.exit_code, run.run.progress.iter) == ("stopped", 0, 6)
    assert outcome.reason == "val/score is 2 and never was below 1 within 6 iters"


def test_it_can_stop_as_soon_as_the_value_is_passed(tmp_path):
    run = trainer([0.1, 0.9], tmp_path, above=0.5, by="5 epochs", stop_when_met=True)
    assert run.train().reason == "val/score is 0.9, as required"


def test_what_was_met_before_a_resume_stays_met(tmp_path):
    options = {"above": 0.5, "by": "3 epochs"}
    trainer([0.9, 0.1], tmp_path, max_epochs=2, **options).train()
    outcome = trainer([0.1] * 9, tmp_path, resume=True, **options).train()
    assert outcome.status == "completed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either above= or below="),
        ({"above": 1, "below": 2}, "either above= or below="),
        ({"above": 1, "otherwise": "cry"}, "write 'fail' or 'stop'"),
        ({"above": 1, "by": "10 min"}, "by counts iterations or epochs"),
        ({"above": 1, "by": "soon"}, "by: 'soon' is not an interval"),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message):
    with pytest.raises(HookError, match=message):
        RequireMetric("val/score", **arguments)
