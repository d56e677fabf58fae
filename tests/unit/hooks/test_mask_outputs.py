import pytest
import torch
from tests.tiny import assert_same_bits, make_trainer, record

from hookloop.errors import HookError
from hookloop.hooks import MaskOutputs

INPUTS = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
BATCHES = [(INPUTS, torch.tensor([0, 2] * 4))]


def make_classifier():
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)


def train(hooks, tmp_path, model=None, **options):
    model = model or make_classifier()
    trainer = make_trainer(
        model=model,
        train_data=BATCHES,
        val_data=BATCHES,
        hooks=hooks,
        run_dir=tmp_path,
        **({"loss": torch.nn.functional.cross_entropy} | options),
    )
    trainer.train()
    return trainer


def test_other_classes_are_left_out_of_evaluation_only(tmp_path):
    seen, calls = record(["after_train_iter", "after_val_iter"], lambda run: run.output.detach())
    trainer = train([MaskOutputs([0, 2]), seen], tmp_path / "a")
    outputs = dict(calls)
    assert outputs["after_train_iter"].isfinite().all()
    assert (outputs["after_val_iter"][:, 1] == -float("inf")).all()
    assert outputs["after_val_iter"][:, [0, 2]].isfinite().all()
    plain = train([], tmp_path / "b")
    assert_same_bits(plain.run.model, trainer.run.model)
    assert trainer.run.metrics.latest("val/loss") < plain.run.metrics.latest("val/loss")


def test_an_entry_of_a_mapping_is_masked(tmp_path):
    def step(run, batch):
        logits = run.model(batch[0])
        return {"logits": logits, "loss": torch.nn.functional.cross_entropy(logits, batch[1])}

    seen, calls = record(["after_val_iter"], lambda run: run.output["logits"])
    hook = MaskOutputs([1], key="logits", value=-9.0)
    train([hook, seen], tmp_path, step=step, loss=None)
    assert (calls[0][1][:, [0, 2]] == -9).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keep": [3]}, "no class 3: the output has 3"),
        ({"keep": [0], "key": "logits"}, "the output is Tensor with the entries none"),
        ({"keep": []}, "numbers of classes"),
        ({"keep": [0], "phases": ["valid"]}, "train, val, test or predict"),
    ],
)
def test_what_cannot_be_masked_is_rejected(arguments, message, tmp_path):
    with pytest.raises(HookError, match=message):
        train([MaskOutputs(**arguments)], tmp_path)
