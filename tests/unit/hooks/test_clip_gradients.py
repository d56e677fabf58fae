import pytest
import torch
from tests.tiny import assert_same_bits, make_model, make_trainer, record

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import ClipGradients


def norm(parameters):
    return torch.stack([weight.grad.norm() for weight in parameters]).norm()


def grouped(model):
    first, second = list(model.parameters())[:2], list(model.parameters())[2:]
    groups = [{"params": first, "name": "first"}, {"params": second}]
    return torch.optim.SGD(groups, lr=0.05)


def test_one_norm_over_everything_is_what_the_trainer_does(tmp_path):
    by_trainer, by_hook = make_model(), make_model()
    make_trainer(model=by_trainer, clip_norm=0.1).train()
    trainer = make_trainer(model=by_hook, hooks=[ClipGradients(0.1)], run_dir=tmp_path)
    trainer.train()
    assert_same_bits(by_trainer, by_hook)
    assert trainer.run.metrics.latest("train/grad_norm") > 0.1  # The norm before clipping.


def test_groups_are_clipped_separately(tmp_path):
    model = make_model()
    seen, calls = record(
        ["after_update"],
        lambda run: [norm(group["params"]).item() for group in run.optimizer.param_groups],
    )
    trainer = make_trainer(
        model=model,
        optimizer=grouped(model),
        hooks=[ClipGradients(max_norm=0.1, per_group=True), seen],
        run_dir=tmp_path,
    )
    trainer.train()
    for _, norms in calls:
        assert norms == pytest.approx([0.1, 0.1], rel=1e-4)
    assert {"train/grad_norm/first", "train/grad_norm/1"} <= set(trainer.run.metrics.names())


def test_values_are_clipped(tmp_path):
    seen, calls = record(
        ["after_update"],
        lambda run: max(weight.grad.abs().max().item() for weight in run.model.parameters()),
    )
    make_trainer(hooks=[ClipGradients(max_value=0.01), seen], run_dir=tmp_path).train()
    assert [value for _, value in calls] == pytest.approx([0.01] * 3)


def test_each_optimizer_has_its_own_norm(tmp_path):
    model = make_model()
    optimizers = {
        "a": torch.optim.SGD(model[0].parameters(), lr=0.1),
        "b": torch.optim.SGD(model[2].parameters(), lr=0.1),
    }
    trainer = make_trainer(
        model=model, optimizer=optimizers, hooks=[ClipGradients(max_norm=0.1)], run_dir=tmp_path
    )
    trainer.train()
    assert {"train/grad_norm/a", "train/grad_norm/b"} <= set(trainer.run.metrics.names())


def test_the_norm_can_be_watched_by_a_hook_that_reads_it(tmp_path):
    class Reader(Hook):
        reads = ("train/grad_norm",)

        def before_update(self, run):
            run.metrics.latest("train/grad_norm")

    make_trainer(hooks=[ClipGradients(1.0), Reader()], run_dir=tmp_path).train()


@pytest.mark.parametrize("arguments", [{}, {"max_norm": 1, "max_value": 1}, {"max_norm": 0}])
def test_wrong_arguments_are_rejected(arguments):
    with pytest.raises(HookError):
        ClipGradients(**arguments)
