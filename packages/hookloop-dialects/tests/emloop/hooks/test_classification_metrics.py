"""Precision, recall, F1 and accuracy of each epoch."""

from collections import OrderedDict

import numpy as np
import pytest

from hookloop_dialects.emloop.hooks import ClassificationMetrics


def compute(true, predicted, **options):
    hook = ClassificationMetrics("predicted", "labels", **options)
    half = len(true) // 2
    for part in (slice(half), slice(half, None)):
        hook.after_batch("valid", {"labels": true[part], "predicted": predicted[part]})
    epoch_data = {"valid": OrderedDict()}
    hook.after_epoch(epoch_id=1, epoch_data=epoch_data)
    return epoch_data["valid"], hook


def test_each_class_has_an_entry_and_only_classes_that_occur():
    found, _ = compute([0, 0, 2, 2], [0, 2, 2, 2])
    assert found["accuracy"] == 0.75
    assert found["precision"] == pytest.approx([1, 2 / 3])
    assert found["recall"] == pytest.approx([0.5, 1])
    assert found["f1"] == pytest.approx([2 / 3, 0.8])
    assert "specificity" not in found


def test_classes_can_be_averaged():
    found, _ = compute([0, 0, 1, 1], [0, 1, 1, 1], f1_average="macro")
    assert found["recall"] == pytest.approx(0.75)
    assert found["precision"] == pytest.approx((1 + 2 / 3) / 2)


def test_two_classes_have_a_specificity_too():
    found, hook = compute([0, 0, 1, 1], [0, 1, 1, 1], f1_average="binary")
    assert found["specificity"] == 0.5
    assert found["recall"] == 1
    assert "specificity" in hook.writes_epoch_data


def test_a_prefix_separates_two_of_them():
    found, hook = compute([0, 1], [0, 1], var_prefix="top_")
    assert list(found) == ["top_precision", "top_recall", "top_f1", "top_accuracy"]
    assert hook.writes_epoch_data == tuple(found)


def test_a_name_that_is_taken_is_rejected():
    hook = ClassificationMetrics("predicted", "labels")
    hook.after_batch("valid", {"labels": [0], "predicted": [0]})
    with pytest.raises(ValueError, match="'precision' .* computed twice: set a var_prefix"):
        hook.after_epoch(epoch_id=1, epoch_data={"valid": {"precision": np.ones(1)}})


def test_an_unknown_average_is_rejected():
    with pytest.raises(ValueError, match="f1_average='sum': write .*macro"):
        ClassificationMetrics("predicted", "labels", f1_average="sum")


def test_an_epoch_begins_empty():
    _, hook = compute([0, 1], [0, 1])
    assert not hook._accumulator
