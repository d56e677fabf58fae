"""One suite over every built-in hook on two ranks: what each of them must do there."""

import contextlib
import io
import os
import sys

import pytest
import torch
from tests.contract.test_hooks import CLOCKS, SLOW, make_data, make_hook, make_trainer
from tests.ranks import on_ranks

import hookloop.hooks
from hookloop.hooks._state_of_ranks import StateOfRanks
from hookloop.hooks.writing._writing import Writing

NAMES = [name for name in hookloop.hooks.__all__ if name not in SLOW]
GROUPS = 5  # A pair of processes for each, because starting one for each hook takes a second.
OWN_LOG = "run_rank1.log"


class Watch:
    """Sees which files of a directory this process writes."""

    def __init__(self):
        self.directory = None
        self.written = set()
        sys.addaudithook(self.hear)

    def hear(self, event, args):
        if self.directory is None:
            return
        if event == "open" and isinstance(args[0], str) and args[2] & (os.O_WRONLY | os.O_RDWR):
            self.note(args[0])
        elif event in ("os.rename", "os.link", "os.mkdir", "os.remove"):
            self.note(args[1] if event in ("os.rename", "os.link") else args[0])

    def note(self, path):
        path = os.fspath(path)
        if path.startswith(self.directory):
            self.written.add(os.path.relpath(path, self.directory))


def train_with_each(names, base):
    """Train and test with one hook after the other; return what is to be compared."""
    watch, seen = Watch(), {}
    for name in names:
        directory = base / name
        hook = make_hook(name)
        # Parts of unequal size, and a batch of the evaluation of which a rank has nothing.
        data = {"train_data": make_data(11), "val_data": make_data(9), "data.test": make_data(9)}
        watch.directory, watch.written = str(directory), set()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            trainer = make_trainer(directory, hook, **data)
            outcome = trainer.train()
            trainer.test()
        watch.directory = None
        is_alike = hook.ranks == "all" and not isinstance(hook, StateOfRanks)
        state = hook.state_dict() if is_alike else {}
        seen[name] = {
            "outcome": (outcome.status, outcome.reason, outcome.disabled),
            "iterations": trainer.run.progress.iter,
            "weights": list(trainer.run.model.state_dict().values()),
            "state": {key: part for key, part in state.items() if key not in CLOCKS.get(name, ())},
            "written": watch.written,
            "printed": printed.getvalue(),
        }
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_ranks_stay_alike_and_the_first_one_writes(group, tmp_path):
    names = NAMES[group::GROUPS]
    first, second = on_ranks(train_with_each, 2, names, tmp_path)
    for name in names:
        one, other = first[name], second[name]
        for part in ("outcome", "iterations"):
            assert one[part] == other[part], (name, part)
        assert one["outcome"][0] == "completed" and not one["outcome"][2], (name, one["outcome"])
        assert all(map(torch.equal, one["weights"], other["weights"])), name
        assert repr(one["state"]) == repr(other["state"]), name
        assert other["written"] <= {OWN_LOG}, (name, other["written"])
        assert not other["printed"], name


def test_hooks_of_the_first_rank_are_those_that_write_or_measure():
    kinds = [getattr(hookloop.hooks, name) for name in hookloop.hooks.__all__]
    assert all(kind.ranks == "first" for kind in kinds if issubclass(kind, Writing))
    # They change the training, or decide when it ends: on all ranks in the same way.
    assert all(kind.ranks == "all" for kind in kinds if kind.takes_part_in_training)
