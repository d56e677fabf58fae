import pytest
import torch
from tests.tiny import assert_same_bits, make_model, make_trainer

from hookloop.errors import HookError
from hookloop.hooks import CountComplexity

EXPECTED = {
    "parameters": 4 * 8 + 8 + 8 + 1,
    "trainable_parameters": 8 * 4 + 8 + 8,
    "flops": 2 * (4 * 8 + 8),
    "activations": 8 + 1,
}


def counts(trainer):
    return {name: trainer.run.metrics.latest(f"model/{name}") for name in EXPECTED}


@pytest.mark.parametrize("input_shape", [None, [4]])
def test_one_sample_is_counted(input_shape, tmp_path):
    model = make_model()
    model[2].bias.requires_grad_(False)
    trainer = make_trainer(
        model=model, hooks=[CountComplexity(input_shape)], max_epochs=2, run_dir=tmp_path
    )
    trainer.train()
    assert counts(trainer) == EXPECTED
    text = (tmp_path / "complexity.txt").read_text()
    assert "flops" in text and "Sequential" in text


def test_convolutions_are_counted(tmp_path):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Flatten())
    data = [(torch.zeros(5, 3, 6, 6), torch.zeros(5, 8 * 36))]
    trainer = make_trainer(
        model=model, train_data=data, hooks=[CountComplexity(file=None)], run_dir=tmp_path
    )
    trainer.train()
    assert trainer.run.metrics.latest("model/flops") == 2 * 3 * 9 * 8 * 36
    assert trainer.run.metrics.latest("model/activations") == 8 * 36
    assert not (tmp_path / "complexity.txt").exists()


@pytest.mark.parametrize("input_shape", [None, [4]])
def test_the_training_is_not_touched(input_shape, tmp_path):
    def train(hooks, run_dir):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8),
            torch.nn.BatchNorm1d(8),
            torch.nn.Dropout(),
            torch.nn.Linear(8, 1),
        )
        make_trainer(model=model, hooks=hooks, run_dir=run_dir, seed=2).train()
        assert not any(module._forward_hooks for module in model.modules())
        return model

    hook = CountComplexity(input_shape)
    assert_same_bits(train([hook], tmp_path / "a"), train([], tmp_path / "b"))


def test_a_failing_forward_pass_leaves_nothing_behind(tmp_path):
    def step(run, batch):
        raise ZeroDivisionError

    model = make_model()
    with pytest.raises(ZeroDivisionError):
        make_trainer(model=model, hooks=[CountComplexity()], step=step, run_dir=tmp_path).train()
    assert not model[0]._forward_hooks
    assert not torch.utils._python_dispatch._get_current_dispatch_mode()


def test_sizes_below_one_are_rejected():
    with pytest.raises(HookError, match="is not a shape"):
        CountComplexity([3, 0])
