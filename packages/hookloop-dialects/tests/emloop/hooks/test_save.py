"""When the model is saved."""

import logging
import math

import pytest

from hookloop_dialects.emloop.hooks import SaveBest, SaveEvery, SaveLatest
from hookloop_dialects.emloop.hooks.save import entry


class Model:
    """Notes under which suffixes it is saved."""

    def __init__(self, error=None):
        self.saved = []
        self.error = error

    def save(self, name_suffix):
        if self.error is not None:
            raise self.error
        self.saved.append(name_suffix)
        return f"model_{name_suffix}"


def best_of(values, **options):
    model = Model()
    hook = SaveBest(model, **({"stream": "valid"} | options))
    for epoch, value in enumerate(values):
        hook.after_epoch(epoch_id=epoch, epoch_data={"valid": {"loss": {"mean": value}}})
    return len(model.saved), hook


def test_every_nth_epoch_is_saved_under_its_number():
    model = Model()
    hook = SaveEvery(model, n_epochs=2)
    for epoch in range(5):
        hook.after_epoch(epoch_id=epoch, epoch_data={})
    assert model.saved == ["0", "2", "4"]


def test_the_latest_is_saved_under_one_name(caplog):
    model = Model()
    with caplog.at_level(logging.INFO):
        SaveLatest(model).after_epoch(epoch_id=3, epoch_data={})
    assert model.saved == ["latest"]
    assert caplog.messages == ["Model saved to: model_latest"]


@pytest.mark.parametrize(
    ("condition", "values", "count"),
    [
        ("min", [3.0, 2.0, 2.0, 4.0, 1.0], 3),
        ("max", [3.0, 2.0, 4.0], 2),
        ("min", [math.nan, 3.0, math.nan, 2.0], 2),
        ("max", [math.nan, math.nan], 0),
        ("min", [math.inf, 1.0], 2),
    ],
)
def test_a_strictly_better_value_is_saved_and_nan_never(condition, values, count):
    assert best_of(values, condition=condition)[0] == count


def test_the_best_value_survives_a_resume():
    _, hook = best_of([2.0])
    again = SaveBest(Model())
    again.load_state_dict(hook.state_dict())
    again.after_epoch(epoch_data={"valid": {"loss": {"mean": 3.0}}})
    assert again._model.saved == []
    again.after_epoch(epoch_data={"valid": {"loss": {"mean": 1.0}}})
    assert again._model.saved == ["best"]


def test_a_plain_number_needs_no_statistic():
    model = Model()
    SaveBest(model, "top", "f1", "max", aggregation="").after_epoch(
        epoch_data={"valid": {"f1": 0.5}}
    )
    assert model.saved == ["top"]


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        ({"train": {}}, {}, KeyError, "no stream 'valid' in this epoch. Available: train"),
        ({"valid": {"f1": 1}}, {}, KeyError, "has no variable 'loss'. Available: f1"),
        ({"valid": {}}, {}, KeyError, "A hook that computes it comes first: ComputeStats"),
        ({"valid": {"loss": 1.0}}, {}, TypeError, "set aggregation to ''"),
        ({"valid": {"loss": {"max": 1}}}, {}, KeyError, "'loss' has no 'mean'"),
        ({"valid": {"loss": [1]}}, {"aggregation": ""}, ValueError, "not a single number"),
    ],
)
def test_what_cannot_be_compared_is_an_error(data, options, error, message):
    with pytest.raises(error, match=message):
        SaveBest(Model(), **options).after_epoch(epoch_data=data)


def test_a_failure_is_handled_as_requested(caplog):
    model = Model(RuntimeError("the disk is full"))
    with pytest.raises(OSError, match="could not be saved") as caught:
        SaveEvery(model).after_epoch(epoch_id=1)
    assert str(caught.value.__cause__) == "the disk is full"
    SaveLatest(model, on_save_failure="ignore").after_epoch()
    assert not caplog.messages
    SaveLatest(model, on_save_failure="warn").after_epoch()
    assert caplog.messages == ["The model could not be saved: the disk is full"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: SaveEvery(Model(), on_failure="stop"),
        lambda: SaveLatest(Model(), on_save_failure="stop"),
        lambda: SaveBest(Model(), on_save_failure="stop"),
        lambda: SaveBest(Model(), condition="stop"),
    ],
)
def test_wrong_arguments_are_rejected_when_made(make):
    with pytest.raises(AssertionError, match="stop"):
        make()


def test_an_entry_is_returned_as_it_is():
    value = object()
    assert entry({"valid": {"x": value}}, "valid", "x") is value
