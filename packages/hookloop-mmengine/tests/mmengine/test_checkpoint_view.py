"""A checkpoint as MMEngine's hooks see and change it."""

import pytest
import torch

from hookloop_mmengine.checkpoint_view import checkpoint_view, meta_of
from hookloop_mmengine.hooks import Hook


class Change(Hook):
    """Applies a function to every checkpoint."""

    def __init__(self, change):
        self.change = change

    def before_save_checkpoint(self, runner, checkpoint):
        self.change(checkpoint)


@pytest.fixture
def saved(tmp_path):
    """Trains natively with a change of the checkpoint; returns the file."""
    from tests.tiny import make_trainer

    from hookloop_mmengine.hooks import CheckpointHook

    def saved(change):
        hooks = [CheckpointHook(interval=1), Change(change)]
        make_trainer(hooks=hooks, run_dir=tmp_path / "run").train()
        return torch.load(tmp_path / "run" / "epoch_1.pth", weights_only=True)

    return saved


def test_a_hook_finds_mmengines_keys(saved):
    seen = {}
    saved(seen.update)
    assert seen.keys() >= {"meta", "state_dict", "message_hub", "optimizer"}
    assert seen.keys().isdisjoint({"model", "optimizers", "progress", "rng", "hooks"})
    assert set(seen["state_dict"]) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert seen["optimizer"]["param_groups"]
    assert (seen["meta"]["epoch"], seen["meta"]["iter"]) == (1, 3)
    assert seen["meta"]["mmengine_version"] == "0.10.7"


def test_new_and_replaced_entries_are_saved(saved):
    def change(checkpoint):
        checkpoint["note"] = "mine"
        checkpoint["state_dict"] = {
            name: torch.zeros_like(value) for name, value in checkpoint["state_dict"].items()
        }

    found = saved(change)
    assert found["note"] == "mine"
    assert not found["model"]["0.weight"].any()


def test_entries_that_are_changed_in_place_are_saved(saved):
    def change(checkpoint):
        checkpoint["state_dict"]["extra"] = torch.ones(1)

    assert "extra" in saved(change)["model"]


def test_removed_entries_are_not_saved(saved):
    found = saved(lambda checkpoint: checkpoint.pop("optimizer"))
    assert not found.get("optimizers")
    assert found["model"]


def test_an_untouched_checkpoint_stays_as_it_is(saved, tmp_path):
    found = saved(lambda checkpoint: None)
    assert "state_dict" not in found
    assert "message_hub" not in found


def test_a_replaced_optimizer_keeps_its_name(make):
    runner = make(limit=1)
    runner.train()
    checkpoint = {"model": {}, "optimizers": {"default": {"a": 1}}, "schedules": {"0": {"b": 2}}}
    with checkpoint_view(runner, checkpoint) as view:
        assert view["optimizer"] == {"a": 1}
        assert view["param_schedulers"] == [{"b": 2}]
        view["optimizer"] = {"a": 3}
        view["param_schedulers"] = []
    assert checkpoint["optimizers"] == {"default": {"a": 3}}
    assert checkpoint["schedules"] == {"0": {"b": 2}}  # Other hooks save and restore these.


def test_several_optimizers_are_shown_by_name(make):
    runner = make(limit=1)
    runner.train()
    checkpoint = {"model": {}, "optimizers": {"a": {"x": 1}, "b": {"x": 2}}}
    with checkpoint_view(runner, checkpoint) as view:
        assert view["optimizer"] == {"a": {"x": 1}, "b": {"x": 2}}
        view["optimizer"] = {"a": {"x": 3}, "b": {"x": 2}}
    assert checkpoint["optimizers"]["a"] == {"x": 3}


@pytest.mark.parametrize(("by_epoch", "epoch", "iteration"), [(True, 2, 4), (False, 0, 2)])
def test_the_counters_of_the_meta_information(run, by_epoch, epoch, iteration):
    runner = run(by_epoch=by_epoch, limit=2, randomness={"seed": 4}, cfg={"a": 1})
    meta = meta_of(runner)
    assert (meta["epoch"], meta["iter"], meta["seed"], meta["cfg"]) == (
        epoch,
        iteration,
        4,
        "a = 1\n",
    )
    assert meta["experiment_name"] == runner.experiment_name
