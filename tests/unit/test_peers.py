"""Names of other libraries lead to ours, and only to ones that exist."""

import inspect

import pytest
import torch

from hookloop import hooks, peers
from hookloop.engine.points import POINTS
from hookloop.peers import suggestion, translation
from hookloop.trainer.settings import SETTINGS

TABLES = {
    name: table for name, table in vars(peers).items() if name.isupper() and isinstance(table, dict)
}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_no_name_is_given_twice_in_an_entry(name):
    for ours, theirs in TABLES[name].items():
        words = theirs.split()
        assert words, ours
        assert len(words) == len(set(words)), ours


def test_the_tables_name_only_what_exists():
    assert set(peers.HOOKS) <= set(hooks.__all__)
    assert set(peers.ARGUMENTS) <= set(SETTINGS)
    assert set(peers.POINTS) <= {point.name for point in POINTS}
    assert all(hasattr(torch.optim.lr_scheduler, name) for name in peers.SCHEDULES)
    assert all(hasattr(torch.nn.functional, name) for name in peers.LOSSES)


def test_every_argument_of_a_hook_in_the_table_belongs_to_some_hook():
    found = set()
    for name in hooks.__all__:
        found |= set(inspect.signature(getattr(hooks, name)).parameters)
    assert set(peers.HOOK_ARGUMENTS) <= found


@pytest.mark.parametrize(
    ("name", "table", "ours"),
    [
        ("LRScheduler", peers.HOOKS, "StepSchedules"),
        ("lr_scheduler", peers.ARGUMENTS, "schedule"),
        ("LR-Scheduler", peers.ARGUMENTS, "schedule"),
        ("on_epoch_end", peers.POINTS, "after_epoch"),
        ("zebra", peers.ARGUMENTS, None),
    ],
)
def test_a_name_is_translated_whatever_its_spelling(name, table, ours):
    assert translation(name, table) == ours


def test_only_possible_names_are_suggested():
    assert translation("monitor", peers.HOOK_ARGUMENTS) == "metric"
    assert translation("monitor", peers.HOOK_ARGUMENTS, ["best", "keep"]) == "best"
    assert translation("monitor", peers.HOOK_ARGUMENTS, ["keep"]) is None


def test_a_misspelled_name_gets_the_nearest_one():
    assert suggestion("befor_run", peers.POINTS, ["before_run"]) == " Did you mean 'before_run'?"
    assert suggestion("zebra", peers.POINTS, ["before_run"]) == ""
