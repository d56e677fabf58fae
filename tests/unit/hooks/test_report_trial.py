import pytest
from tests.ranks import on_ranks
from tests.tiny import make_classifier

from hookloop.errors import HookError
from hookloop.hooks import ReportTrial

optuna = pytest.importorskip("optuna")


def study(**options):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(**options)


def objective(trial, epochs=3):
    rate = trial.suggest_float("lr", 1e-3, 1.0, log=True)
    trainer = make_classifier(hooks=[ReportTrial(trial, "val/loss")], max_epochs=epochs)
    trainer.run.optimizer.param_groups[0]["lr"] = rate
    outcome = trainer.train()
    if outcome.reason == "pruned":
        raise optuna.TrialPruned
    return outcome.metrics["val/loss"]


def test_values_arrive_with_their_iteration():
    found = study()
    found.optimize(objective, n_trials=1)
    (trial,) = found.trials
    assert trial.state.name == "COMPLETE"
    assert list(trial.intermediate_values) == [3, 6, 9]
    assert trial.value == trial.intermediate_values[9]


def test_a_pruned_trial_stops_its_run():
    found = study(pruner=optuna.pruners.ThresholdPruner(upper=0.0))
    found.optimize(objective, n_trials=1)
    (trial,) = found.trials
    assert trial.state.name == "PRUNED"
    assert list(trial.intermediate_values) == [3]


def test_a_metric_without_a_phase_is_rejected():
    with pytest.raises(HookError, match="has no phase"):
        ReportTrial(None, "loss")


class Prune:
    def __init__(self):
        self.steps = []

    def report(self, value, step):
        self.steps.append(step)

    def should_prune(self):
        return len(self.steps) == 2


def prune_on_ranks():
    import os

    trial = Prune() if os.environ["RANK"] == "0" else None
    outcome = make_classifier(hooks=[ReportTrial(trial, "val/loss")], max_epochs=5).train()
    return outcome.status, outcome.reason, trial and trial.steps


@pytest.mark.slow
def test_the_trial_of_the_first_rank_ends_all():
    assert on_ranks(prune_on_ranks, 2) == [
        ("stopped", "pruned", [3, 6]), ("stopped", "pruned", None),
    ]  # fmt: skip
