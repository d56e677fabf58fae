import numpy as np
import pytest
import torch
from torch import nn

from hookloop.data.description import describe, note_batch, note_module
from hookloop.errors import DataError
from hookloop.testing import tiny_trainer


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.zeros(2, 3, dtype=torch.float16), "float16[2, 3]"),
        (torch.zeros(2, device="meta"), "float32[2] on meta"),
        (
            [torch.zeros(1), (torch.ones(2, dtype=torch.bool), None)],
            "[float32[1], (bool[2], NoneType)]",
        ),
        ({"text": ["a"]}, "{text: [str]}"),
        (np.zeros((2, 2)), "ndarray[2, 2]"),
        ([0] * 100, "[int, int, int, int, int, int, int, int, ... 100 in all]"),
        (object(), "object"),
    ],
)
def test_types_and_shapes_are_named(value, words):
    assert describe(value) == words


@pytest.mark.parametrize(
    ("phase", "output", "note"),
    [
        ("train", [], "in training, iteration 4: the batch is (float32[2])"),
        ("val", [], "in the phase val, after iteration 3: the batch is (float32[2])"),
        ("train", [torch.zeros(3)], "the batch is (float32[2]), the output is float32[3]"),
        ("train", [[torch.zeros(3)]], "The model returned a list: take the part that you need"),
    ],
)
def test_an_error_gets_a_note_about_the_batch(phase, output, note):
    error = ValueError("shapes")
    note_batch(error, phase, 3, (torch.zeros(2),), *output)
    (added,) = error.__notes__
    assert note in added
    assert ("the output is" in added) == bool(output)


def test_an_error_of_hookloop_gets_no_note():
    error = DataError("train_data is empty")
    note_batch(error, "train", 3, torch.zeros(2))
    assert not hasattr(error, "__notes__")


# --- the module -----------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, inputs):
        return self.linear(inputs)


class Hidden(nn.Module):
    """Holds a module where torch does not look."""

    def __init__(self):
        super().__init__()
        self.parts = [nn.Linear(3, 3)]

    def forward(self, inputs):
        return self.parts[0](inputs)


class Unshown(nn.Module):
    def extra_repr(self):
        raise RuntimeError("no text")

    def forward(self, inputs):
        raise ValueError("never")


def notes_of(model, call):
    try:
        call()
    except (RuntimeError, ValueError, AttributeError) as error:
        note_module(error, model)
        return getattr(error, "__notes__", [])
    raise AssertionError("nothing was raised")


def test_the_innermost_module_of_the_model_is_named():
    model = nn.Sequential(nn.Linear(4, 16), nn.ModuleDict({"a": Block(nn.Linear(8, 2))})["a"])
    assert notes_of(model, lambda: model(torch.zeros(2, 4))) == [
        "in model.1.linear (Linear(in_features=8, out_features=2, bias=True))"
    ]


def test_the_model_itself_may_be_the_module():
    assert notes_of(nn.Linear(2, 1), lambda: None.none) == []
    model = Unshown()
    assert notes_of(model, lambda: model(1)) == ["in model (Unshown)"]


def test_a_module_that_is_not_registered_is_named_with_the_one_that_called_it():
    model = nn.Sequential(Hidden())
    assert notes_of(model, lambda: model(torch.zeros(2, 4))) == [
        "in Linear(in_features=3, out_features=3, bias=True), which is not a part of the model",
        "in model.0 (Hidden())",
    ]


def test_a_loss_is_named():
    loss = nn.CrossEntropyLoss()
    assert notes_of(nn.Linear(2, 1), lambda: loss(torch.zeros(2, 3), torch.zeros(4).long())) == [
        "in CrossEntropyLoss(), which is not a part of the model"
    ]


class FailsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs):
        return inputs.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("in the backward")


class Backward(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, inputs):
        return FailsBackward.apply(self.inner(inputs))


@pytest.mark.parametrize(
    ("options", "notes"),
    [
        (
            {"model": nn.Sequential(nn.Linear(4, 8), nn.Linear(9, 3))},
            [
                "in training, iteration 1: the batch is",
                "in model.1 (Linear(in_features=9, ",
                "write Linear(8, 3)",
            ],
        ),
        (
            {"loss": nn.NLLLoss(), "model": nn.Sequential(nn.Flatten(0), nn.Linear(16, 3))},
            [
                "in training, iteration 1: the batch is",
                "in NLLLoss(",
                "changes the first dimension",
            ],
        ),
        ({"model": Backward()}, ["in training, iteration 1: the batch is"]),
        (
            {"step": lambda model, batch: model(batch[0]).mean(), "loss": None},
            ["in training, iteration 1: the batch is", "the model is run.model"],
        ),
        (
            {"model": nn.Linear(4, 3), "val_data": [(torch.ones(2, 5), torch.ones(2).long())]},
            [
                "in the phase val, after iteration 3",
                "in model (Linear(",
                "write Linear(5, 3)",
                "val_data, batch 1",
            ],
        ),
    ],
)
def test_errors_of_a_training_name_phase_batch_and_module(options, notes):
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
        tiny_trainer(**options).train()
    for note, found in zip(notes, caught.value.__notes__, strict=True):
        assert note in found
