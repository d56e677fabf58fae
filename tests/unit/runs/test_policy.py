import math

import pytest

from hookloop.runs.policy import infer_rule, is_better, nearest_metric, rule_of


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("val/accuracy", "greater"),
        ("ACC", "greater"),
        ("val/coco/bbox_mAP_50", "greater"),
        ("val/AR@100", "greater"),
        ("loss", "less"),
        ("val/seg_loss", "less"),
        ("val/mape", "less"),  # "map" is a part of it.
        ("val/top5_error", "less"),  # "top" is a part of it.
        ("val/zebra", None),
        ("loss/zebra", None),  # Only the last part counts.
    ],
)
def test_the_rule_is_inferred_from_the_name(name, rule):
    assert rule_of(name) == rule


def test_infer_rule_checks_greater_keys_before_the_end_of_a_name():
    assert infer_rule("val/top5_error") == "greater"
    assert infer_rule("val/accuracy_loss") == "greater" and rule_of("val/accuracy_loss") == "less"
    assert infer_rule("val/mape") == "less"  # It equals a key.


def test_keys_can_be_replaced():
    assert rule_of("val/zebra", greater_keys=["zeb"], less_keys=[]) == "greater"
    assert rule_of("val/accuracy", greater_keys=["zeb"], less_keys=["racy"]) == "less"
    assert rule_of("val/loss", greater_keys=["loss"], less_keys=["loss"]) == "greater"


@pytest.mark.parametrize(
    ("new", "old", "rule", "expected"),
    [
        (1.0, None, "greater", True),
        (1.0, 0.5, "greater", True),
        (1.0, 0.5, "less", False),
        (0.5, 1.0, "less", True),
        (0.5, 0.5, "less", False),
        (0.5, 0.5, "greater", False),
        (math.nan, None, "greater", False),
        (math.nan, 1.0, "less", False),
        (math.inf, 1.0, "greater", True),
    ],
)
def test_only_a_strictly_better_number_is_better(new, old, rule, expected):
    assert is_better(new, old, rule) is expected


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("val/acuracy", "val/accuracy"), ("recal", "recall"), ("a/b/LOS", "a/b/loss")],
)
def test_a_misspelled_name_gets_a_suggestion(name, suggestion):
    assert nearest_metric(name) == f" Did you mean '{suggestion}'?"


def test_an_unknown_name_gets_no_suggestion():
    assert nearest_metric("val/zebra") == ""
