import math

import pytest

from hookloop.errors import HookError, MetricError
from hookloop.metrics.scores import BestScores
from hookloop.runs.policy import GREATER_KEYS, LESS_KEYS


def make(best, rule=None):
    return BestScores(best, rule, GREATER_KEYS, LESS_KEYS)


def test_each_metric_follows_its_own_rule():
    scores = make(["val/accuracy", "loss"])
    assert scores.reads == ("val/accuracy", "val/loss")
    assert scores.update({"accuracy": 0.5, "loss": 2.0}) == ["accuracy", "loss"]
    assert scores.update({"accuracy": 0.6, "loss": 2.5}) == ["accuracy"]
    assert scores.update({"accuracy": 0.6, "loss": 1.5}) == ["loss"]
    assert scores.scores == {"accuracy": 0.6, "loss": 1.5}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_never_the_best(value):
    scores = make("zebra", "greater")
    assert scores.update({"zebra": value}) == []
    assert scores.update({"zebra": 1.0}) == ["zebra"]
    assert scores.update({"zebra": value}) == [] and scores.scores == {"zebra": 1.0}


@pytest.mark.parametrize(
    ("metrics", "chosen"),
    [
        ({"loss": 1.0, "accuracy": 0.5, "f1": 0.5}, "accuracy"),
        ({"loss": 1.0, "aux_loss": 0.5}, "loss"),
        ({"loss": 1.0, "kl": 2.0, "accuracy": 0.5}, "accuracy"),
        ({"loss": 1.0, "kl": 2.0}, "loss"),  # A part of the loss, that a step returned.
    ],
)
def test_auto_chooses_the_first_metric_that_is_not_a_loss(metrics, chosen):
    scores = make("auto")
    assert scores.reads == ()
    assert scores.update({}) == []  # Nothing to choose from yet.
    assert scores.update(metrics) == [chosen] == scores.metrics


def test_one_rule_applies_to_all_and_a_list_to_each():
    same, each = make(["a", "b"], "less"), make(["a", "b"], ["less", "greater"])
    for scores in (same, each):
        scores.update({"a": 1.0, "b": 1.0})
    assert same.update({"a": 0.5, "b": 2.0}) == ["a"]
    assert each.update({"a": 0.5, "b": 2.0}) == ["a", "b"]


def test_a_best_that_could_not_be_saved_is_reverted_unless_a_newer_one_replaced_it():
    scores = make("loss")
    scores.update({"loss": 2.0})
    scores.update({"loss": 1.0})
    scores.revert("loss", 1.0)
    assert scores.scores == {"loss": 2.0}
    scores.update({"loss": 0.5})
    scores.revert("loss", 1.0)
    assert scores.scores == {"loss": 0.5}
    for lost in (0.5, 2.0):
        scores.revert("loss", lost)
    assert scores.scores == {} and scores.update({"loss": 9.0}) == ["loss"]


def test_several_count_as_the_best_and_what_a_lost_one_displaced_does_again():
    scores = BestScores("loss", None, GREATER_KEYS, LESS_KEYS, 2)
    taken = [value for value in (3.0, 4.0, 2.0, 4.0, 3.0, 1.0) if scores.update({"loss": value})]
    assert taken == [3.0, 4.0, 2.0, 1.0]
    assert scores.kept == {"loss": [1.0, 2.0]} and scores.scores == {"loss": 1.0}
    scores.revert("loss", 1.0)
    assert scores.kept == {"loss": [2.0, 3.0]}
    again = BestScores("loss", None, GREATER_KEYS, LESS_KEYS, 2)
    again.kept = scores.kept
    assert again.update({"loss": 3.0}) == [] and again.update({"loss": 2.5}) == ["loss"]


@pytest.mark.parametrize(
    ("best", "rule", "message"),
    [
        (["auto", "loss"], None, "'auto' must stand alone"),
        (["loss", "loss"], None, "names a metric twice: loss, loss"),
        (["a", "b"], ["less"], "rule has 1 entries for 2 metrics"),
        ("zebra", None, "'zebra' does not show whether more or less is better"),
        ("acuracy", ["more"], r"Did you mean 'accuracy'\? Otherwise give rule='greater'"),
    ],
)
def test_invalid_arguments_are_rejected_before_training(best, rule, message):
    with pytest.raises(HookError, match=message):
        make(best, rule)


def test_a_missing_metric_is_an_error_that_lists_the_others():
    with pytest.raises(MetricError, match="'acc'"):
        make("acc").update({"accuracy": 1.0, "loss": 1.0})
