"""Updates that an iMIX hook makes."""

from types import SimpleNamespace

import pytest
import torch
from tests.tiny import assert_same_bits, make_trainer

from hookloop import Hook, Update
from hookloop.errors import HookError, ModelError
from hookloop.hooks import ClipGradients
from hookloop_dialects.imix.update import left_to


class MakeUpdate(Hook):
    """Does what the loop would do."""

    takes_part_in_training = True

    def change_update(self, run, update):
        return left_to(self, run, update)

    def after_backward(self, run):
        run.optimizer.zero_grad()
        run.loss.backward()
        run.optimizer.step()


def test_a_hook_makes_the_update_of_the_loop():
    ours, by_hook = make_trainer(max_epochs=2), make_trainer(max_epochs=2, hooks=[MakeUpdate()])
    ours.train()
    by_hook.train()
    assert_same_bits(ours.run.model, by_hook.run.model)
    assert ours.run.metrics.all_latest() == by_hook.run.metrics.all_latest()
    by_hook.train(max_epochs=3)  # Again, with the same update.
    assert by_hook.run.progress.iter == 9


def test_a_loss_that_the_hook_changes_in_place_is_recorded_as_it_was():
    class Halve(MakeUpdate):
        def after_backward(self, run):
            run.loss /= 2
            super().after_backward(run)

    plain, halved = make_trainer(max_iters=1), make_trainer(max_iters=1, hooks=[Halve()])
    plain.train()
    halved.train()
    loss = plain.run.metrics.all_latest()["train/loss"]
    assert halved.run.metrics.all_latest()["train/loss"] == loss
    assert float(halved.run.loss.detach()) == pytest.approx(loss / 2)


def test_gradients_may_wait_so_checkpoints_hold_them():
    trainer = make_trainer(hooks=[MakeUpdate()])
    trainer.check_hooks()
    assert trainer._checked_updates()[0].keeps_gradients


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"accumulate": 2}, ModelError, "accumulate= would have no effect"),
        ({"accumulate": "auto"}, ModelError, "accumulate= would have no effect"),
        ({"accumulate": {0: 1, "5 epochs": 4}}, ModelError, "accumulate= would have no effect"),
        ({"clip_norm": 1.0}, ModelError, "clip_norm= would have no effect"),
        (
            {"hooks": [MakeUpdate(), ClipGradients(1.0)]},
            HookError,
            "'clip_gradients' acts on gradients at before_update",
        ),
        (
            {"hooks": [MakeUpdate(), MakeUpdate().named("second")]},
            HookError,
            "'second' acts on gradients at after_backward, when the hook 'make_update' has made",
        ),
        (
            {"step": {"default": lambda run, batch: None, "other": lambda run, batch: None}},
            ModelError,
            "step= is several",
        ),
    ],
)
def test_what_would_have_no_effect_is_rejected(options, error, message):
    model = torch.nn.Linear(4, 1)
    if "step" in options:
        one, two = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
        options = {**options, "optimizer": {"default": one, "other": two}}
    trainer = make_trainer(**{"model": model, "hooks": [MakeUpdate()], **options})
    with pytest.raises(error, match=message):
        trainer.check()


def test_an_update_of_the_users_own_is_rejected():
    class Own(Update):
        pass

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    own = Own("", lambda run: None, lambda run: None, [optimizer])
    trainer = make_trainer(model=model, optimizer=optimizer, step=own, hooks=[MakeUpdate()])
    with pytest.raises(ModelError, match="step=.*Update"):
        trainer.check()


def test_a_loop_of_the_users_own_is_rejected():
    trainer = make_trainer(hooks=[MakeUpdate()])
    with (
        pytest.raises(HookError, match="after_backward"),
        trainer.loop(),
    ):
        pass


def test_many_ranks_are_rejected():
    run = SimpleNamespace(world=SimpleNamespace(cuts_batches=True, size=4, logical=0))
    with pytest.raises(HookError, match="cannot average the gradients of 4 ranks"):
        left_to(MakeUpdate(), run, make_trainer()._updates[0])
