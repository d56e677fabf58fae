"""What RuntimeInfoHook puts into the message hub."""

import numpy as np
import pytest
import torch
from tests.mmengine.parts import Net, Scripted

from hookloop_mmengine.hooks import Hook


class Look(Hook):
    """Writes down an entry of the hub at every point."""

    priority = "LOWEST"

    def __init__(self, key):
        self.key, self.rows = key, {}

    def _look(self, stage, runner):
        self.rows.setdefault(stage, []).append(runner.message_hub.get_info(self.key))


def _looker(stage):
    return lambda self, runner, **arguments: self._look(stage, runner)


for _stage in Hook.stages:
    setattr(Look, _stage, _looker(_stage))


def test_facts_of_the_run(run):
    runner = run(limit=2, randomness={"seed": 5}, experiment_name="toy", cfg={"a": 1})
    hub = runner.message_hub
    assert hub.get_info("seed") == 5
    assert hub.get_info("experiment_name") == runner.experiment_name
    assert hub.get_info("experiment_name").startswith("toy_")
    assert hub.get_info("mmengine_version") == "0.10.7"
    assert hub.get_info("cfg") == "a = 1\n"
    assert (hub.get_info("max_epochs"), hub.get_info("max_iters")) == (2, 4)


def test_the_stage_of_the_loop(run):
    look = Look("loop_stage")
    run(look, limit=2).test()
    assert look.rows["before_train_iter"] == ["train"] * 4
    assert look.rows["before_val_iter"] == ["val"] * 4
    assert look.rows["before_train_epoch"] == ["train"] * 2
    assert look.rows["after_train"] == [None]
    assert look.rows["before_test_iter"] == ["test"] * 2
    assert look.rows["after_test"] == [None]


def test_a_validation_alone_leaves_no_stage(make):
    runner = make()
    runner.val()
    assert runner.message_hub.get_info("loop_stage") is None


def test_the_epoch_during_a_validation_is_the_one_just_trained(run):
    look = Look("epoch")
    run(look, limit=3)
    assert look.rows["before_val_epoch"] == [0, 1, 2]


def test_learning_rates_and_outputs_of_each_iteration(run):
    runner = run(param_scheduler={"type": "ExponentialLR", "gamma": 0.5})
    hub = runner.message_hub
    assert hub.get_scalar("train/lr").data[0].tolist() == [0.1, 0.1, 0.05, 0.05, 0.025, 0.025]
    assert len(hub.get_scalar("train/loss").data[0]) == 6


def test_several_groups_show_the_base_rate(run):
    rules = {"custom_keys": {"bias": {"lr_mult": 2.0}}}
    wrapper = {"optimizer": {"type": "SGD", "lr": 0.1}, "paramwise_cfg": rules}
    hub = run(limit=1, optim_wrapper=wrapper).message_hub
    assert hub.get_scalar("train/base_lr").current() == 0.1
    assert "train/lr" in hub.log_scalars


def test_outputs_that_are_not_scalars_are_left_out(run):
    class Rich(Net):
        def train_step(self, data, optim_wrapper):
            losses = super().train_step(data, optim_wrapper)
            return {**losses, "count": 3, "vector": torch.ones(2), "array": np.ones(1)}

    hub = run(limit=1, model=Rich()).message_hub
    assert hub.get_scalar("train/count").current() == 3
    assert hub.get_scalar("train/array").current() == 1
    assert "train/vector" not in hub.log_scalars


def test_metrics_are_scalars_or_information(run):
    evaluator = [Scripted({"acc": torch.tensor(0.5), "table": [1, 2]})]
    runner = run(limit=1, val_evaluator=evaluator, test_evaluator=[Scripted({"acc": 0.25})])
    runner.test()
    hub = runner.message_hub
    assert hub.get_scalar("val/acc").current() == 0.5
    assert hub.get_info("val/table") == [1, 2]
    assert hub.get_scalar("test/acc").current() == 0.25


def test_meta_information_of_the_dataset(run, make):
    runner = make(limit=1)
    runner.train_dataloader.dataset.metainfo = {"classes": ("a",)}
    runner.train()
    assert runner.message_hub.get_info("dataset_meta") == {"classes": ("a",)}


@pytest.mark.parametrize("by_epoch", [True, False])
def test_the_iteration_is_an_index(run, by_epoch):
    look = Look("iter")
    run(look, by_epoch=by_epoch, limit=2)
    count = 4 if by_epoch else 2
    assert look.rows["after_train_iter"] == list(range(count))
