from math import inf, nan

import pytest
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError
from hookloop.hooks import ActOnPlateau


class Note(ActOnPlateau):
    """Notes the epochs in which it acts."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.epochs = []

    def act(self, run):
        self.epochs.append(run.progress.epoch)


class Follow:
    """A metric that takes the values of a list, one per validation."""

    def __init__(self, values):
        self.values = iter(values)

    def reset(self):
        self.value = next(self.values)

    def update(self, output, targets):
        pass

    def compute(self):
        return self.value


def acts_in(values, tmp_path, **options):
    hook = Note("val/score", **({"mode": "greater"} | options))
    trainer = make_trainer(
        hooks=[hook],
        metrics={"score": Follow(values)},
        val_data=make_data(4),
        max_epochs=len(values),
        run_dir=tmp_path,
    )
    assert trainer.train().status == "completed"  # It acts, it does not stop.
    return hook.epochs


def stalls(values, **options):
    """Return after which of the values the metric has stalled."""
    hook = Note("val/score", **({"mode": "greater"} | options))
    return [number for number, value in enumerate(values, 1) if hook.observe(value)]


def test_it_acts_again_after_the_same_patience(tmp_path):
    assert acts_in([1] * 8, tmp_path, patience=2) == [3, 5, 7]


def test_an_improvement_starts_the_patience_again(tmp_path):
    assert acts_in([1, 1, 2, 2, 1, 3, 3], tmp_path, patience=2) == [5]


@pytest.mark.parametrize(
    ("options", "values", "after"),
    [
        ({"patience": 1}, [1, 2, 2, 3, 1], [3, 5]),
        ({"patience": 1, "mode": "less"}, [1, 2, 2, 3, 1], [2, 3, 4, 5]),
        ({"patience": 1, "mode": "max"}, [1, 2, 1], [3]),
        ({"patience": 1, "mode": "min"}, [3, 2, 1], []),
        # An improvement must be larger than min_delta, measured from the best.
        ({"patience": 1, "min_delta": 0.5}, [1, 1.5, 1.6, 2], [2, 4]),
        ({}, [1] * 11, [6, 11]),
    ],
)
def test_patience_counts_values_that_do_not_beat_the_best(options, values, after):
    assert stalls(values, **options) == after


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_value_that_is_not_finite_is_never_the_best(bad):
    hook = Note("val/score", mode="greater", patience=2)
    assert [hook.observe(value) for value in (bad, 1, bad, bad)] == [False, False, False, True]
    assert hook.best == 1


@pytest.mark.parametrize(
    ("mode", "values", "after"),
    [
        # Means of the last two and the last four: 1 1, 1.5 1.5, 2.5 2, 2.5 2.25, 1.5 2.25.
        ("greater", [1, 2, 3, 2, 1], [5]),
        ("less", [1, 2, 3, 2, 1], [3, 4]),
        ("greater", [1, 1, 1, 1, 1], []),
        # NaN is left out of a mean; a short window of nothing else is a plateau.
        ("greater", [1, nan, 2, nan, nan, 1], [5, 6]),
    ],
)
def test_windows_compare_two_means(mode, values, after):
    assert stalls(values, mode=mode, long_term=4, short_term=2) == after


@pytest.mark.parametrize("options", [{"patience": 3}, {"long_term": 4, "short_term": 2}])
def test_the_state_continues_where_it_was_saved(options):
    values = [1, 3, 2, 2, 2.5, 1, 1, 1, 4, 1]
    for cut in range(len(values)):
        first, second = (Note("val/score", mode="greater", **options) for _ in range(2))
        before = [first.observe(value) for value in values[:cut]]
        second.load_state_dict(first.state_dict())
        after = [second.observe(value) for value in values[cut:]]
        straight = stalls(values, **options)
        assert [n for n, stalled in enumerate(before + after, 1) if stalled] == straight


def test_a_state_of_another_shape_is_rejected():
    with pytest.raises(ValueError, match="'state.best' is missing or has the wrong type or value"):
        Note("val/loss").load_state_dict({"best": "low", "waited": 0, "values": []})


@pytest.mark.parametrize(
    ("metric", "rule"),
    [
        ("val/top1_error", "less"),
        ("val/mape", "less"),
        ("val/specificity", "greater"),
        ("val/loss/max", "less"),  # The variable decides, not the statistic.
        ("val/accuracy/min", "greater"),
    ],
)
def test_the_name_of_a_metric_decides_what_is_better(metric, rule):
    assert Note(metric).rule == rule


def test_the_mode_wins_over_the_name():
    assert Note("val/loss", mode="greater").rule == "greater"


def test_an_action_has_to_be_defined():
    with pytest.raises(HookError, match=r"act\(self, run\)"):
        ActOnPlateau("val/loss")
