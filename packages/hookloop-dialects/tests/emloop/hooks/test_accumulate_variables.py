"""The values of all batches of an epoch."""

import numpy as np
import pytest
import torch

from hookloop_dialects.emloop.hooks import AccumulateVariables


def accumulated(hook):
    return {
        stream: {name: list(values) for name, values in variables.items()}
        for stream, variables in hook._accumulator.items()
    }


def test_variables_are_collected_by_stream_until_the_epoch_ends():
    hook = AccumulateVariables(["loss"])
    hook.after_batch("train", {"loss": [1, 2], "other": [0, 0]})
    hook.after_batch("train", {"loss": np.array([3.0])})
    hook.after_batch("valid", {"loss": (4,)})
    assert accumulated(hook) == {"train": {"loss": [1, 2, 3]}, "valid": {"loss": [4]}}
    hook.after_epoch(epoch_id=1, epoch_data={})
    assert accumulated(hook) == {}


def test_a_missing_variable_names_the_nearest_and_all():
    hook = AccumulateVariables(["lose"])
    with pytest.raises(KeyError, match=r"no 'lose'.*'train'.*Did you mean 'loss'.*loss, ids"):
        hook.after_batch("train", {"loss": [1], "ids": [2]})


def test_a_value_without_entries_is_rejected():
    with pytest.raises(TypeError, match="'loss' of the stream 'train' has no entry per example"):
        AccumulateVariables(["loss"]).after_batch("train", {"loss": object()})


@pytest.mark.parametrize(
    "values",
    [
        [1.5, 2.5],
        [1, 2, 3],
        [True, False],
        ["a", "b"],
        [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
        [np.array([1.0]), np.array([3.0, 4.0])],
        [np.float32(0.1), np.float32(0.2)],
    ],
)
def test_an_unfinished_epoch_survives_a_resume(values, tmp_path):
    hook = AccumulateVariables(["x"])
    hook.after_batch("train", {"x": values})
    torch.save(hook.state_dict(), tmp_path / "state.pth")
    again = AccumulateVariables(["x"])
    again.after_batch("valid", {"x": [9]})  # Replaced by the state.
    again.load_state_dict(torch.load(tmp_path / "state.pth", weights_only=True))
    kept = again._accumulator["train"]["x"]
    assert "valid" not in again._accumulator
    assert len(kept) == len(values)
    for one, other in zip(kept, values, strict=True):
        assert np.array_equal(one, other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", getattr(one, "dtype", None))
