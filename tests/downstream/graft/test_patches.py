"""What is replaced, what runs through, and that all of it can be taken back."""

import logging

import pytest
import torch
from mmengine.optim import OptimWrapper
from mmengine.registry import LOOPS
from mmengine.runner import (
    BaseLoop,
    CheckpointLoader,
    EpochBasedTrainLoop,
    FlexibleRunner,
    IterBasedTrainLoop,
    Runner,
    loops,
)
from tests.downstream.graft import toy

from hookloop import dialects


def test_undo_sets_everything_back():
    before = [EpochBasedTrainLoop.run, IterBasedTrainLoop.run, Runner.save_checkpoint]
    iterator = loops._InfiniteDataloaderIterator
    with dialects.graft("mmengine"):
        assert EpochBasedTrainLoop.run is not before[0]
        assert loops._InfiniteDataloaderIterator is not iterator
    assert [EpochBasedTrainLoop.run, IterBasedTrainLoop.run, Runner.save_checkpoint] == before
    assert loops._InfiniteDataloaderIterator is iterator


def test_a_runner_that_was_imported_before_trains_on_the_engine(tmp_path):
    with dialects.graft("mmengine"):
        toy.make_runner(tmp_path).train()
    assert (tmp_path / "run.log").is_file()  # Only our engine writes this.


@LOOPS.register_module()
class CountingLoop(EpochBasedTrainLoop):
    """A loop of a project's own, in which every second batch is left out."""

    def run_iter(self, idx, data_batch):
        if idx % 2 == 0:
            super().run_iter(idx, data_batch)


@LOOPS.register_module()
class OwnLoop(BaseLoop):
    def __init__(self, runner, dataloader, times):
        super().__init__(runner, dataloader)
        self.times = times
        self.epoch = self.iter = self._iter = self._epoch = 0
        self.max_epochs = self.max_iters = times
        self.stop_training = False

    def run(self):
        self.runner.call_hook("before_train")
        for _, batch in zip(range(self.times), self.dataloader, strict=False):
            self.runner.model.train_step(batch, optim_wrapper=self.runner.optim_wrapper)
        self.runner.call_hook("after_train")
        return self.runner.model


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"type": "CountingLoop", "max_epochs": 2}, "CountingLoop has run_iter of its own"),
        ({"type": "OwnLoop", "times": 3}, "OwnLoop is a loop of the project's own"),
    ],
)
def test_a_loop_of_a_project_runs_through_and_is_reported_once(
    settings, reason, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(logging.getLogger("hookloop"), "propagate", True)
    results = []
    for name in ((), ("mmengine",)):
        with dialects.graft(*name):
            runner = toy.make_runner(
                tmp_path / str(len(name)),
                train_cfg=dict(settings),
                val_dataloader=None,
                val_evaluator=None,
                val_cfg=None,
            )
            runner.train()
        results.append(toy.weights_of(runner))
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])
    reports = [record.message for record in caplog.records if reason in record.message]
    assert len(reports) == 1
    assert "a resume begins" in reports[0]


def test_a_flexible_runner_trains_on_the_engine(tmp_path):
    losses = []
    for name in ((), ("mmengine",)):
        hook = toy.Record()
        torch.manual_seed(1)
        with dialects.graft(*name):
            directory = tmp_path / str(len(name))
            FlexibleRunner(
                toy.Net(),
                work_dir=str(directory),
                train_dataloader=toy.loader(shuffle=True),
                train_cfg={"by_epoch": True, "max_epochs": 2},
                optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}},
                custom_hooks=[hook],
                randomness={"seed": 3},
                experiment_name=f"flexible_{next(toy.numbers)}",
            ).train()
        losses.append([call for call in hook.seen if call[0] == "after_train_iter"])
        assert (directory / "run.log").is_file() == bool(name)
        assert (directory / "epoch_2.pth").is_file()
    assert losses[0] == losses[1]


def test_an_optimizer_of_another_model_trains_nothing_as_in_mmengine(tmp_path, caplog):
    def train(home):
        other = OptimWrapper(torch.optim.SGD(toy.Net().parameters(), lr=0.1))
        runner = toy.make_runner(tmp_path / home, optim_wrapper=other)
        runner.train()
        return runner.iter, dict(runner.model.named_parameters())

    expected = train("real")
    with dialects.graft("mmengine"), caplog.at_level(logging.WARNING, logger="hookloop"):
        found = train("graft")
    assert found[0] == expected[0] > 0
    assert "The optimizer 'default' holds no trainable parameter of the model." in caplog.text


def test_the_log_names_the_backend_that_loads_a_file(tmp_path):
    path = str(tmp_path / "weights.pth")
    torch.save({"state_dict": {}}, path)
    with dialects.graft("mmengine"):
        assert CheckpointLoader._get_checkpoint_loader(path).__name__ == "load_from_local"
        assert CheckpointLoader.load_checkpoint(path) == {"state_dict": {}}
