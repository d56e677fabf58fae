"""When EarlyStoppingHook ends a training, with the numbers measured in MMEngine."""

import math

import pytest
from tests.mmengine.parts import Scripted

from hookloop_mmengine.hooks import EarlyStoppingHook


@pytest.fixture
def epochs(run):
    """Trains at most ten epochs on scripted metrics; returns how many there were."""

    def epochs(values, monitor="acc", **options):
        rows = [{monitor: value} for value in values]
        hook = {"type": "EarlyStoppingHook", "monitor": monitor, **options}
        return run(hook, limit=10, val_evaluator=[Scripted(*rows)]).epoch

    return epochs


@pytest.mark.parametrize(
    ("values", "options", "wanted"),
    [
        ([0.1], {}, 6),
        ([0.1], {"patience": 2}, 3),
        ([0.1], {"min_delta": 0, "patience": 2}, 10),
        # In floating point 0.2 + 0.1 > 0.3, so the third value is not an improvement.
        ([0.1, 0.2, 0.3], {"patience": 1}, 3),
        ([0.1, 0.5, 0.4, 0.9, 0.9], {"patience": 2}, 6),
        ([0.1, math.nan], {}, 2),
        ([math.inf], {}, 1),
        ([0.1, math.nan, 0.9], {"check_finite": False, "patience": 3}, 6),
        ([0.1, 0.6, 0.9], {"stopping_threshold": 0.8}, 3),
        ([0.1, 0.8], {"stopping_threshold": 0.8, "patience": 2}, 4),
    ],
    ids=str,
)
def test_a_metric_of_which_more_is_better(epochs, values, options, wanted):
    assert epochs(values, **options) == wanted


@pytest.mark.parametrize(
    ("values", "options", "wanted"),
    [
        ([1.0, 0.5, 0.45], {"patience": 2}, 4),
        ([1.0, 0.8, 0.6, 0.4, 0.2], {"patience": 1}, 6),
        ([1.0, 0.05], {"stopping_threshold": 0.1}, 2),
        ([-math.inf], {}, 1),
    ],
    ids=str,
)
def test_a_metric_of_which_less_is_better(epochs, values, options, wanted):
    assert epochs(values, monitor="loss", **options) == wanted


def test_a_missing_metric_is_a_warning_or_an_error(run, caplog):
    runner = run(EarlyStoppingHook("acc"), limit=2)
    assert runner.epoch == 2
    assert "EarlyStoppingHook: 'acc' is not in the metrics: ['count/samples']" in caplog.text
    with pytest.raises(RuntimeError, match="'acc' is not in the metrics"):
        run(EarlyStoppingHook("acc", strict=True), limit=2)


@pytest.mark.parametrize(("monitor", "rule"), [("acc", "greater"), ("my_loss", "less")])
def test_the_rule_is_inferred(monitor, rule):
    assert EarlyStoppingHook(monitor).rule == rule
    assert EarlyStoppingHook(monitor, rule="less").rule == "less"


@pytest.mark.parametrize("options", [{"monitor": "zebra"}, {"monitor": "acc", "rule": "more"}])
def test_a_rule_that_cannot_be_inferred_is_an_error(options):
    with pytest.raises(ValueError, match="Cannot infer the rule for"):
        EarlyStoppingHook(**options)


def test_its_counters_survive_a_resume(run):
    def part(limit, **options):
        hook = EarlyStoppingHook("acc", patience=3)
        evaluator = [Scripted({"acc": 0.1})]
        return run(hook, limit=limit, val_evaluator=evaluator, **options).epoch

    assert part(2) == 2
    assert part(9, resume=True) == 4
