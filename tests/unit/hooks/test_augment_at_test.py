from collections import namedtuple

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record

from hookloop.errors import HookError
from hookloop.hooks import AugmentAtTest


def flip(inputs):
    return inputs.flip(-1)


def outputs(hook, tmp_path, phase="test", **options):
    model = options.pop("model", None) or make_model()
    seen, calls = record([f"after_{phase}_iter"], lambda run: run.output)
    trainer = make_trainer(
        model=model,
        hooks=[hook, seen],
        val_data=make_data(4),
        data={"test": make_data(4)},
        run_dir=tmp_path,
        **options,
    )
    getattr(trainer, {"val": "validate"}.get(phase, phase))()
    assert not model._forward_hooks  # The model is left as it was.
    return calls[0][1], model.eval()


INPUTS = next(iter(make_data(4)))[0]


def test_outputs_of_all_views_are_averaged(tmp_path):
    merged, model = outputs(AugmentAtTest([flip, torch.neg]), tmp_path)
    expected = (model(INPUTS) + model(flip(INPUTS)) + model(-INPUTS)) / 3
    assert torch.allclose(merged, expected)


def test_the_original_can_be_left_out_and_the_greatest_taken(tmp_path):
    hook = AugmentAtTest([flip, torch.neg], original=False, merge="max")
    merged, model = outputs(hook, tmp_path)
    assert torch.allclose(merged, torch.maximum(model(flip(INPUTS)), model(-INPUTS)))


def test_outputs_are_turned_back(tmp_path):
    model = torch.nn.Linear(4, 4)
    loss = {"loss": lambda output, targets: output.mean()}
    merged, model = outputs(AugmentAtTest([(flip, flip)]), tmp_path, model=model, **loss)
    assert torch.allclose(merged, (model(INPUTS) + flip(model(flip(INPUTS)))) / 2)


def test_a_function_can_merge(tmp_path):
    merged, model = outputs(AugmentAtTest([flip], merge=lambda views: views[1]), tmp_path)
    assert torch.allclose(merged, model(flip(INPUTS)))


def test_it_acts_in_the_given_phases(tmp_path):
    merged, model = outputs(AugmentAtTest([flip]), tmp_path / "a", phase="val")
    assert torch.equal(merged, model(INPUTS))
    hook = AugmentAtTest([flip], phases=["val", "test"])
    merged, model = outputs(hook, tmp_path / "b", phase="val")
    assert torch.allclose(merged, (model(INPUTS) + model(flip(INPUTS))) / 2)


def test_mappings_are_merged_entry_by_entry():
    outputs = [
        {"logits": torch.tensor([1.0]), "ids": torch.tensor([7]), "rest": (torch.ones(1), "x")},
        {"logits": torch.tensor([3.0]), "ids": torch.tensor([8]), "rest": (torch.zeros(1), "y")},
    ]
    merged = AugmentAtTest([flip]).join(outputs)
    # Integers and text cannot be averaged: those of the first output are kept.
    assert merged == {"logits": torch.tensor([2.0]), "ids": torch.tensor([7]), "rest": (0.5, "x")}


def test_keyword_inputs_are_augmented_too(tmp_path):
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make_model()

        def forward(self, inputs, scale):
            return {"output": self.inner(inputs) * scale, "loss": self.inner(inputs).sum()}

    def step(run, batch):
        return run.model(inputs=batch[0], scale=2.0)

    merged, model = outputs(AugmentAtTest([flip]), tmp_path, model=Named(), step=step)
    expected = model.inner(INPUTS) + model.inner(flip(INPUTS))
    assert torch.allclose(merged["output"], expected)


def test_training_is_not_changed(tmp_path):
    plain, augmented = make_model(), make_model()
    make_trainer(model=plain, val_data=make_data(4)).train()
    hook = AugmentAtTest([flip], phases=["val"])
    make_trainer(model=augmented, hooks=[hook], val_data=make_data(4), run_dir=tmp_path).train()
    assert_same_bits(plain, augmented)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"views": []}, "at least one view"),
        ({"views": [flip], "merge": "maen"}, "Did you mean 'mean'"),
        ({"views": [flip], "phases": ["train"]}, "write val, test or predict"),
        ({"views": [(flip, flip, flip)]}, "is not a view"),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message):
    with pytest.raises(HookError, match=message):
        AugmentAtTest(**arguments)


def test_a_named_tuple_stays_one():
    Output = namedtuple("Output", ["scores", "kind"])
    hook = AugmentAtTest([flip])
    joined = hook.join([Output(torch.tensor([1.0]), "a"), Output(torch.tensor([3.0]), "a")])
    assert joined == Output(torch.tensor([2.0]), "a")


def test_only_functions_are_views():
    with pytest.raises(HookError, match="3 is not a view"):
        AugmentAtTest([3])
