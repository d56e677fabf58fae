"""Hooks that would hang or overwrite files on many ranks are rejected before they run."""

from pathlib import Path

import pytest
import torch

import hookloop.hooks
from hookloop.engine.hook import FunctionHook, Hook
from hookloop.errors import HookError
from hookloop.trainer.planning import check_on_ranks


class WriteText(Hook):
    """Writes with pathlib."""

    def after_epoch(self, run):
        (run.dir / "epoch.txt").write_text("done")


class WriteOpen(Hook):
    """Writes in a nested function."""

    def after_epoch(self, run):
        def write():
            with Path(run.dir, "epoch.txt").open("a") as file:
                file.write("done")

        write()


class WriteTensors(Hook):
    """Writes with torch."""

    def after_epoch(self, run):
        torch.save(run.model.state_dict(), run.dir / "own.pt")


@pytest.mark.parametrize("kind", [WriteText, WriteOpen, WriteTensors])
def test_a_hook_that_writes_on_all_ranks_is_rejected_unless_it_says_where(kind):
    with pytest.raises(HookError, match=f"{kind.__name__} writes files.*ranks = 'first'"):
        check_on_ranks([kind()])
    for ranks in ("first", "all"):
        check_on_ranks([type("Declared", (kind,), {"ranks": ranks})()])


def test_a_hook_that_looks_at_its_rank_may_write():
    def write(run):
        if run.world.is_main:
            (run.dir / "epoch.txt").write_text("done")

    check_on_ranks([FunctionHook(write, "after_epoch")])


def test_reading_and_requesting_are_not_writing():
    def look(run):
        text = Path("notes.txt").read_text(encoding="utf-8")
        with Path("numbers.txt").open("r") as file:
            text += file.read()
        run.save(torch.device("cpu").type + text)

    check_on_ranks([FunctionHook(look, "after_epoch")])


class Gather(Hook):
    """Exchanges numbers."""

    def after_train_iter(self, run):
        run.gather(float(run.loss))


def test_an_exchange_is_rejected_where_only_the_first_rank_is():
    check_on_ranks([Gather()])
    on_first, by_clock = Gather(), Gather()
    on_first.ranks, by_clock.every = "first", "10 s"
    for hook in (on_first, by_clock):
        with pytest.raises(HookError, match="Gather"):
            check_on_ranks([hook])


def test_reducing_something_else_is_no_exchange():
    def reduce(run):
        torch.logical_or.reduce([run.loss])

    hook = FunctionHook(reduce, "after_train_iter")
    hook.ranks = "first"
    check_on_ranks([hook])


def test_the_built_in_hooks_pass():
    check_on_ranks([hookloop.hooks.TraceRun(), hookloop.hooks.SavePredictions()])
