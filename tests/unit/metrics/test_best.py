import math

from hookloop.metrics.scores import BestValues


def update(best, *rows):
    for step, values in enumerate(rows, start=1):
        best.update(values, iter=10 * step, epoch=step)


def test_the_name_decides_whether_more_or_less_is_better():
    best = BestValues()
    rows = [(0.5, 0.5), (0.7, 0.7), (0.2, 0.2)]
    update(best, *({"val/loss": loss, "val/accuracy": accuracy} for loss, accuracy in rows))
    assert best.all() == {
        "val/loss": {"value": 0.2, "iter": 30, "epoch": 3},
        "val/accuracy": {"value": 0.7, "iter": 20, "epoch": 2},
    }


def test_a_tie_keeps_the_older_value_and_nan_is_never_best():
    best = BestValues()
    update(best, {"val/f1": math.nan}, {"val/f1": 0.5}, {"val/f1": math.nan}, {"val/f1": 0.5})
    assert best.all() == {"val/f1": {"value": 0.5, "iter": 20, "epoch": 2}}


def test_a_name_without_a_rule_has_no_best_value():
    best = BestValues()
    update(best, {"val/zebra": 1.0, "val/loss": 2.0})
    assert list(best.all()) == ["val/loss"]


def test_a_restored_state_is_compared_with_later_values():
    first, second = BestValues(), BestValues()
    update(first, {"val/loss": 0.3})
    state = first.state_dict()
    second.load_state_dict(state)
    second.update({"val/loss": 0.4}, iter=99, epoch=9)
    assert second.all() == first.all()
    second.update({"val/loss": 0.1}, iter=99, epoch=9)
    assert second.all()["val/loss"]["epoch"] == 9
    assert first.all()["val/loss"]["epoch"] == state["val/loss"]["epoch"] == 1  # Not shared.
