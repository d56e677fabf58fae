"""The hooks that guard a training against bad losses, together."""

from itertools import permutations

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks import RequireFiniteLoss, RollBack, SkipBadUpdates, StopOnNaN


def batches(*bad, count=6):
    found = [[inputs.clone(), targets] for inputs, targets in make_data(4 * count)]
    for index in bad:
        found[index][0][0, 0] = torch.nan
    return found


class NoteSkips(Hook):
    def __init__(self):
        self.seen = []

    def after_update(self, run):
        self.seen.append(bool(run.will_skip))

    def after_train_iter(self, run):
        assert run.will_skip is False


def train(hooks, data, run_dir, fused=False):
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, fused=fused)
    trainer = make_trainer(
        model=model, optimizer=optimizer, train_data=data, hooks=hooks, run_dir=run_dir
    )
    trainer.train()
    return trainer


def test_the_order_in_which_guards_are_listed_does_not_matter(tmp_path):
    ends = []
    for number, order in enumerate(permutations(range(4))):
        guards = [RollBack(), SkipBadUpdates(), RequireFiniteLoss(every=2), StopOnNaN(every=1000)]
        guards[3].phases = ("val",)  # Of the training it would end what the others save.
        trainer = train([guards[index] for index in order], batches(3), tmp_path / str(number))
        assert trainer.run.metrics.values_since({}, ["train/rewinds"])
        ends.append(trainer.run.model)
    for other in ends[1:]:
        assert_same_bits(ends[0], other)


@pytest.mark.parametrize("fused", [False, True])
def test_other_hooks_are_told_that_an_update_is_dropped(tmp_path, fused):
    notes = NoteSkips()
    train([notes, SkipBadUpdates()], batches(1, 4), tmp_path, fused)
    assert notes.seen == [False, True, False, False, True, False]


def test_a_hook_of_ones_own_may_declare_how_it_guards(tmp_path):
    class DropSilently(Hook):
        guards_by = "dropping"
        takes_part_in_training = True

        def before_update(self, run):
            if not run.loss.isfinite():
                run.model.zero_grad(set_to_none=True)
                run.will_skip = True

    # By itself, the guard of the defaults fails at two losses in a row that are not finite.
    train([DropSilently(), RequireFiniteLoss(every=1)], batches(2, 3), tmp_path / "a")
    DropSilently.guards_by = None
    with pytest.raises(FloatingPointError, match="weights are still finite"):
        train([DropSilently(), RequireFiniteLoss(every=2)], batches(2, 3), tmp_path / "b")
    DropSilently.guards_by = "stopping"
    with pytest.raises(HookError, match="DropSilently"):
        train([DropSilently(), RollBack()], batches(), tmp_path / "c")
