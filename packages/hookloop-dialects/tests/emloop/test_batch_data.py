"""A batch as emloop's hooks see it."""

import numpy as np
import pytest
import torch
from tests.emloop.looking import Look, train

from hookloop.errors import HookError
from hookloop_dialects.emloop.batch_data import BatchData, merge


@pytest.mark.parametrize(
    ("batch", "names"),
    [
        ((torch.ones(2, 1), torch.ones(2)), ["inputs", "targets"]),
        ([torch.ones(2, 1), torch.ones(2)], ["inputs", "targets"]),
        ({"x": torch.ones(2), "ids": ["a", "b"]}, ["x", "ids"]),
        (torch.ones(2, 3), ["inputs"]),
    ],
)
def test_the_variables_of_a_batch(batch, names):
    assert list(BatchData(batch)) == names


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (torch.ones(2, 1), ["inputs", "output", "loss"]),
        ({"predicted": torch.ones(2)}, ["inputs", "predicted", "loss"]),
        (None, ["inputs", "loss"]),
        ([1, 2], ["inputs", "output", "loss"]),
    ],
)
def test_the_variables_of_an_output(output, names):
    data = BatchData(torch.ones(2, 3))
    data.add(output, torch.tensor(0.5))
    assert list(data) == names


def test_an_output_that_is_the_loss_is_listed_once():
    data, loss = BatchData(torch.ones(2, 3)), torch.tensor(0.5)
    data.add(loss, loss)
    assert list(data) == ["inputs", "loss"]


def test_values_are_arrays_without_gradients_and_a_number_is_repeated():
    data = BatchData((torch.ones(3, 2), torch.zeros(3)))
    data.add(torch.ones(3, 1, requires_grad=True) * 2, torch.tensor(0.5, requires_grad=True))
    assert isinstance(data["output"], np.ndarray) and data["output"].shape == (3, 1)
    assert data["loss"].tolist() == [0.5] * 3
    assert {**data}["loss"].tolist() == [0.5] * 3
    assert [type(value) for value in data.values()] == [np.ndarray] * 4
    assert [(name, type(value)) for name, value in data.items()][-1] == ("loss", np.ndarray)
    assert data.get("nothing") is None
    assert data.get("loss").shape == (3,)
    half = BatchData({"x": torch.ones(2, dtype=torch.bfloat16)})
    assert half["x"].dtype == np.float32


def test_a_tensor_is_converted_once():
    data = BatchData({"x": torch.ones(2)})
    assert data["x"] is data["x"]


def test_consecutive_steps_on_one_batch_are_one():
    first, second = {"x": torch.ones(1)}, {"x": torch.zeros(1)}
    made = merge([
        (first, {"a": 1.0}, torch.tensor(0.1)),
        (first, {"b": 2.0}, torch.tensor(0.2)),
        (second, {"a": 3.0}, torch.tensor(0.3)),
    ])  # fmt: skip
    assert [sorted(data) for data in made] == [["a", "b", "loss", "x"], ["a", "loss", "x"]]
    assert made[0]["loss"].tolist() == pytest.approx([0.2])  # The last step's.
    assert made[0].is_of(first) and not made[0].is_of(second)
    assert merge([]) == []


def test_batch_and_output_must_not_share_a_name(tmp_path):
    def step(run, batch):
        return {"loss": run.model(batch["x"]).mean(), "x": 1.0}

    with pytest.raises(HookError, match="both have x"):
        train(tmp_path, Look(), train_data=[{"x": torch.ones(2, 4)}], step=step)


def test_turns_over_one_batch_make_one_batch(tmp_path):
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": torch.nn.Linear(4, 1)})

    def step(name):
        def compute(run, batch):
            output = run.model[name](batch[0])
            return {"loss": output.square().mean(), name: output}

        return compute

    hook = Look(lambda stream, data: sorted(data))
    train(
        tmp_path,
        hook,
        model=model,
        step={"a": step("a"), "b": step("b")},
        optimizer={name: torch.optim.SGD(model[name].parameters(), lr=0.1) for name in "ab"},
    )
    assert hook.seen == [["a", "b", "inputs", "loss", "targets"]] * 3
