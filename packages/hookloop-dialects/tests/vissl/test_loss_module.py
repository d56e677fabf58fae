"""The loss as a module, and its state in checkpoints."""

import pytest
import torch
from tests.tiny import assert_same_bits, make_trainer
from tests.vissl.phases import train

from hookloop.errors import CheckpointError, HookError
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.vissl import ClassyHook
from hookloop_dialects.vissl.loss_module import FunctionLoss, loss_module, restore_loss


def test_a_module_is_itself_and_a_function_is_wrapped():
    module = torch.nn.MSELoss()
    assert loss_module(module) is module
    wrapped = loss_module(torch.nn.functional.mse_loss)
    assert isinstance(wrapped, FunctionLoss) and wrapped.state_dict() == {}
    assert wrapped(torch.ones(2), torch.zeros(2)) == 1
    with pytest.raises(AttributeError, match=r"no 'moco_encoder'.*torch.nn.Module"):
        wrapped.moco_encoder  # noqa: B018 - the question itself
    with pytest.raises(HookError, match="as loss="):
        loss_module(None)(1, 2)


class Memory(torch.nn.Module):
    """A loss with a buffer that a hook changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("center", torch.zeros(1))

    def forward(self, output, target):
        return (output - target - self.center).square().mean()


class Center(ClassyHook):
    on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

    def on_forward(self, task):
        if task.train:
            task.loss.center.mul_(0.5).add_(task.last_batch.model_output.detach().mean(), alpha=0.1)


def test_what_a_hook_puts_into_the_loss_takes_effect_and_survives_a_resume(tmp_path):
    def run(where, epochs, **options):
        hooks = Center(), SaveCheckpoint()
        return train(tmp_path / where, *hooks, loss=Memory(), max_epochs=epochs, **options)

    run("cut", 1)
    resumed = run("cut", 2, resume=True)
    whole = run("whole", 2)
    assert_same_bits(resumed.run._internals.loss_function, whole.run._internals.loss_function)
    assert_same_bits(resumed.run.model, whole.run.model)
    plain = train(tmp_path / "plain", loss=Memory(), max_epochs=2)
    assert not torch.equal(plain.run.model[0].weight, whole.run.model[0].weight)


def test_parts_that_a_hook_built_are_named_if_the_loss_cannot_keep_them():
    class Keeping(Memory):
        def load_state_dict(self, state):
            self.checkpoint = state

    state = {"center": torch.ones(1), "teacher.weight": torch.ones(1)}
    with pytest.raises(CheckpointError, match=r"Memory lacks .*teacher.weight.*'checkpoint'"):
        restore_loss(Memory(), state)
    keeping = Keeping()
    restore_loss(keeping, state)
    assert keeping.checkpoint is state


def test_the_run_knows_the_loss_that_the_trainer_was_given():
    loss = Memory()
    assert make_trainer(loss=loss).run._internals.loss_function is loss
    assert make_trainer(step=lambda run, batch: None).run._internals.loss_function is None
