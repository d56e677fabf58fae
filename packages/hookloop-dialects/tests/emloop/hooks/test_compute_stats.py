"""Statistics of variables over each epoch."""

import math
import warnings

import pytest

from hookloop_dialects.emloop.hooks import ComputeStats


def compute(variables, values, streams=("train",)):
    hook = ComputeStats(variables)
    for value in values:
        hook.after_batch("train", dict.fromkeys(hook.writes_epoch_data, value))
    epoch_data = {stream: {} for stream in streams}
    hook.after_epoch(epoch_id=1, epoch_data=epoch_data)
    return epoch_data


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (["loss"], {"loss": {"mean": 3.0}}),
        ([{"loss": ["min", "max"]}], {"loss": {"min": 1.0, "max": 6.0}}),
        ({"loss": ["median"]}, {"loss": {"median": 2.5}}),
        (["loss", {"size": ["sum"]}], {"loss": {"mean": 3.0}, "size": {"sum": 12.0}}),
    ],
)
def test_statistics_are_those_of_numpy(variables, expected):
    assert compute(variables, [[1.0, 2.0], [3.0, 6.0]])["train"] == expected


def test_nan_can_be_counted():
    found = compute([{"loss": ["nancount", "nanfraction", "nanmean"]}], [[1.0, math.nan], [3.0, 2]])
    assert found["train"]["loss"] == {"nancount": 1, "nanfraction": 0.25, "nanmean": 2.0}


def test_the_order_of_the_statistics_is_kept():
    names = ["std", "mean", "max"]
    assert list(compute([{"loss": names}], [[1.0]])["train"]["loss"]) == names


def test_a_stream_without_batches_has_the_mean_nan_and_no_minimum():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy's warning does not reach the user.
        found = compute(["loss"], [[1.0]], ("train", "valid"))
    assert math.isnan(found["valid"]["loss"]["mean"])
    with pytest.raises(ValueError, match="zero-size"):
        compute([{"loss": ["min"]}], [[1.0]], ("train", "valid"))


def test_an_unknown_statistic_is_rejected_when_made():
    with pytest.raises(ValueError, match=r"'medain', wanted for 'loss'.*Did you mean 'median'"):
        ComputeStats([{"loss": ["mean", "medain"]}])


def test_a_second_epoch_does_not_remember_the_first():
    hook = ComputeStats(["loss"])
    for value in (1.0, 5.0):
        hook.after_batch("train", {"loss": [value]})
        epoch_data = {"train": {}}
        hook.after_epoch(epoch_id=1, epoch_data=epoch_data)
    assert epoch_data["train"]["loss"] == {"mean": 5.0}


def test_a_subclass_can_add_to_the_statistics():
    class Mine(ComputeStats):
        def _save_stats(self, epoch_data):
            super()._save_stats(epoch_data)
            epoch_data["train"]["count"] = len(self._accumulator["train"]["loss"])

    hook, epoch_data = Mine(["loss"]), {"train": {}}
    hook.after_batch("train", {"loss": [1.0, 3.0]})
    hook.after_epoch(epoch_data, epoch_id=1)
    assert epoch_data == {"train": {"loss": {"mean": 2.0}, "count": 2}}
    assert ComputeStats._compute_aggregation("max", [1, 4]) == 4
    with pytest.raises(ValueError, match="is not a function of NumPy"):
        ComputeStats._raise_check_aggregation("maen")
