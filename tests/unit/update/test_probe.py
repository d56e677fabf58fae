"""The probe names what happens in an iteration, and changes no bit of it."""

from itertools import zip_longest

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_trainer
from torch import nn

from hookloop import Hook, hooks
from hookloop.update.probe import Firing, HookProbe, Line, Probe, digest_of

ITERS = 4


class Twice(nn.Module):
    """A block that is called twice, with an attribute that counts and keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.2))
        self.head = nn.Linear(4, 1)
        self.calls = 0

    def forward(self, inputs):
        self.calls += 1
        return self.head(input=self.block(self.block(inputs)))


def trained(own=(), probe=None, *, workers=0, **options):
    torch.manual_seed(0)
    model = options.pop("model", Twice)()
    looking = () if probe is None else probe.hooks if isinstance(probe, Probe) else (probe,)
    parts = {
        "model": model,
        "train_data": make_data(24, shuffle=True, num_workers=workers),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        "hooks": [*own, *looking],
        "max_iters": ITERS,
        "seed": 1,
    }
    trainer = make_trainer(**(parts | options))
    trainer.train()
    return trainer.run.model


def lines_of(own=(), **options):
    found = {}
    probe = Probe(lambda number, lines: found.update({number: lines}))
    trained(own, probe, **options)
    return found


def parted(one, other):
    """The first line in which two trainings differ."""
    for number in one:
        for ours, theirs in zip_longest(one[number], other[number]):
            if ours != theirs:
                return number, ours.at, ours.kind, ours.name
    return None


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"clip_norm": 0.1}], ids=str)
def test_it_takes_all_lines_and_leaves_every_bit(options):
    one, other = lines_of(**options), lines_of(**options)
    assert one == other and list(one) == [1, 2, 3, 4]
    probe = Probe(lambda number, lines: None)
    assert_same_bits(trained(**options), trained(probe=probe, **options))
    calls = [line.at for line in one[1] if line.at.startswith("output of block.0")]
    assert calls[:2] == ["output of block.0", "output of block.0 (call 2)"]
    assert any(line.name == "head input input" for line in one[1])  # By keyword.
    kinds = {line.kind for line in one[2]}
    assert kinds >= {"generator", "weight", "buffer", "optimizer", "group", "setting", "ids"}
    assert kinds >= {"batch", "input", "output", "loss", "gradient"}


@pytest.mark.slow
def test_ids_are_those_of_the_iteration_though_workers_are_ahead():
    def ids(found):
        return [[one.digest for one in lines if one.kind == "ids"] for lines in found.values()]

    alone, beside = ids(lines_of()), ids(lines_of(workers=2))
    assert alone == beside and len({one[0] for one in alone}) == ITERS


def test_modules_keep_their_fast_paths_and_their_call():
    class Frozen(nn.Module):
        """Its first layer takes another kernel in evaluation mode, unless it has hooks."""

        def __init__(self):
            super().__init__()
            self.teacher = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
            self.head = nn.Linear(4, 1)

        def forward(self, inputs):
            self.teacher.eval()
            with torch.no_grad():
                found = self.teacher(inputs[:, None])
            return self.head(found[:, 0])

    call = nn.Module.__call__
    probe = Probe(lambda number, lines: None)
    assert_same_bits(trained(model=Frozen), trained(probe=probe, model=Frozen))
    assert nn.Module.__call__ is call

    class Failing(nn.Module):
        def forward(self, inputs):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        trained(probe=probe, model=lambda: nn.Sequential(nn.Linear(4, 1), Failing()))
    assert nn.Module.__call__ is call


class At(Hook):
    """Does something once, and says that it takes part."""

    takes_part_in_training = True
    draws_random_numbers = False
    name = "planted"

    def __init__(self, point, do, at=2):
        def act(run, *args):
            if run.progress.iter == at:
                do(run)

        setattr(self, point, act)


def nudge(run):
    with torch.no_grad():
        run.model.head.weight[0, 0] += 1e-6


PLANTED = {
    "weight": (At("before_forward", nudge), ("before_forward", "weight", "head.weight")),
    "weight between": (At("after_train_iter", nudge), ("after_train_iter", "weight")),
    "generator": (
        At("before_forward", lambda run: torch.rand(1)),
        ("before_forward", "generator", "torch"),
    ),
    "gradient": (
        At("before_update", lambda run: run.model.head.weight.grad.mul_(1 + 1e-6)),
        ("after_before_update", "gradient", "head.weight"),
    ),
    "buffer": (
        At("before_forward", lambda run: run.model.block[1].running_var.mul_(1 + 1e-6)),
        ("before_forward", "buffer", "block.1.running_var"),
    ),
    "setting": (
        At("before_forward", lambda run: setattr(run.model.block[2], "p", 0.25)),
        ("before_forward", "setting", "block.2.p"),
    ),
    "rate": (
        At("before_update", lambda run: run.optimizer.param_groups[0].update(lr=0.04)),
        ("after_before_update", "group", "0.lr"),
    ),
    "loss": (
        At("after_loss", lambda run: setattr(run, "loss", run.loss * (1 + 4e-7))),
        ("after_loss", "loss", "loss"),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_a_hook_changes_is_found_and_the_hook_is_named(name):
    hook, where = PLANTED[name]
    number, *found = parted(lines_of([At("before_train", lambda run: None)]), lines_of([hook]))
    # At the end of an iteration a hook sees it as completed.
    assert (number, *found[: len(where)]) == (2 if where[0] == "after_train_iter" else 3, *where)

    firings: list[Firing] = []
    trained([hook, hooks.ClipGradients(1e9)], HookProbe(firings.append, first=3, last=3))
    kind = where[1]
    writers = {one.hook for one in firings if any(kind == wrote[0] for wrote in one.wrote)}
    assert writers == {"planted"}


def test_a_digest_sees_every_bit_and_no_address():
    class Thing:
        def __init__(self):
            self.number, self.tensor, self.call = 1, torch.ones(2), lambda: None

    equal = [digest_of(Thing()) for _ in range(2)]
    assert equal[0] == equal[1] is not None
    assert digest_of(object()) is None and digest_of([]) is not None
    assert digest_of(torch.tensor([0.0])) != digest_of(torch.tensor([-0.0]))
    assert digest_of(torch.zeros(2, 3)) != digest_of(torch.zeros(3, 2))
    sparse = torch.tensor([[0.0, 1.0]]).to_sparse()
    assert digest_of(sparse) != digest_of(sparse * 2)
    assert digest_of(torch.tensor([1 + 2j]).conj()) == digest_of(torch.tensor([1 - 2j]))

    seen = []

    def inside(value):
        seen.append(digest_of(value))
        return value

    torch.func.vmap(inside)(torch.ones(3))
    assert seen == [None]
    assert isinstance(Line("a", "b", "c", "d"), tuple)
