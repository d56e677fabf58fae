"""Validations: MMEngine's own loop, and loops of a project."""

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.registry import LOOPS
from mmengine.runner import BaseLoop, ValLoop
from tests.downstream.graft import toy

from hookloop import dialects


@LOOPS.register_module()
class TwiceLoop(ValLoop):
    """A validation loop of a project's own."""

    def run(self):
        super().run()
        return super().run()


@LOOPS.register_module()
class SeveralLoop(BaseLoop):
    """Validates on several sets of data and returns nothing, as mmagic's `MultiValLoop`."""

    def __init__(self, runner, dataloader, evaluator):
        self._runner = runner
        self.dataloaders = [runner.build_dataloader(one, seed=runner.seed) for one in dataloader]
        self.evaluators = [runner.build_evaluator(one) for one in evaluator]

    def run(self):
        runner, metrics = self.runner, {}
        runner.call_hook("before_val")
        runner.call_hook("before_val_epoch")
        runner.model.eval()
        for number, loader in enumerate(self.dataloaders):
            self.dataloader = loader  # MMEngine's own hooks ask for its length.
            for index, batch in enumerate(loader):
                runner.call_hook("before_val_iter", batch_idx=index, data_batch=batch)
                with torch.no_grad():
                    outputs = runner.model.val_step(batch)
                self.evaluators[number].process(data_samples=outputs, data_batch=batch)
                runner.call_hook(
                    "after_val_iter", batch_idx=index, data_batch=batch, outputs=outputs
                )
            found = self.evaluators[number].evaluate(len(loader.dataset))
            metrics |= {f"{number}/{name}": value for name, value in found.items()}
        runner.call_hook("after_val_epoch", metrics=metrics)
        runner.call_hook("after_val")


@LOOPS.register_module()
class OwnDataLoop(BaseLoop):
    """Validates on what it makes itself."""

    def __init__(self, runner, dataloader, evaluator):
        self._runner = runner

    def run(self):
        self.runner.call_hook("before_val_epoch")
        score = float(torch.randn(4).sum())
        self.runner.call_hook("after_val_epoch", metrics={"score": score})
        return {"score": score}


SEVERAL = {
    "val_cfg": {"type": "SeveralLoop"},
    "val_dataloader": [toy.loader(shuffle=False, workers=1), toy.loader(shuffle=False)],
    "val_evaluator": [[toy.Accuracy()], [toy.Accuracy()]],
}
OWN = {
    **SEVERAL,
    "val_cfg": {"type": "OwnDataLoop"},
    # MMEngine's LoggerHook asks for the length of the loader.
    "default_hooks": {"logger": None, "checkpoint": {"type": "CheckpointHook", "interval": 1}},
}


@pytest.mark.parametrize(
    "validation",
    [SEVERAL, OWN],
    ids=["several loaders", "no loader"],
)
def test_a_validation_loop_without_a_dataloader_is_used(tmp_path, validation):
    from hookloop import CheckpointStore

    seen, weights = [], []
    for name in ((), ("mmengine",)):
        hook, directory = toy.Record(), tmp_path / str(len(name))
        with dialects.graft(*name):
            runner = toy.make_runner(directory, hook, **validation)
            runner.train()
        seen.append(hook.seen)
        weights.append(toy.weights_of(runner))
    results = [[call for call in calls if call[0] == "after_val_epoch"] for calls in seen]
    assert results[0] == results[1]
    assert len(results[0]) == 3
    assert all(torch.equal(one, weights[1][name]) for name, one in weights[0].items())
    entry = CheckpointStore(tmp_path / "1").index.entries["epoch_3.pth"]
    last = {f"val/{name}": value for name, value in results[1][-1][-1].items()}
    assert {name: entry.metrics[name] for name in last} == last


class FailAt(Hook):
    """Ends the training in an iteration, as a kill would."""

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == 14:
            raise OSError("killed")


def test_several_loaders_continue_after_a_failure(tmp_path):
    """Also one whose workers stay: torch draws their seed in the first validation only."""
    with dialects.graft("mmengine"):
        whole = toy.make_runner(tmp_path / "whole", length=4, **SEVERAL)
        whole.train()
        with pytest.raises(OSError, match="killed"):
            toy.make_runner(tmp_path / "cut", FailAt(), length=4, **SEVERAL).train()
        cut = toy.make_runner(tmp_path / "cut", length=4, resume=True, **SEVERAL)
        cut.train()
    weights = [toy.weights_of(one) for one in (whole, cut)]
    assert all(torch.equal(one, weights[1][name]) for name, one in weights[0].items())


def test_a_validation_loop_of_a_project_is_used(tmp_path):
    seen = []
    for name in ((), ("mmengine",)):
        hook = toy.Record()
        with dialects.graft(*name):
            directory = tmp_path / str(len(name))
            toy.make_runner(directory, hook, val_cfg={"type": "TwiceLoop"}).train()
        seen.append([call for call in hook.seen if call[0] == "after_val_epoch"])
    assert seen[0] == seen[1]
    assert len(seen[0]) == 6


def test_metrics_stand_beside_the_checkpoint(tmp_path):
    from hookloop import CheckpointStore

    hook = toy.Record()
    with dialects.graft("mmengine"):
        toy.make_runner(tmp_path, hook, length=1).train()
    entry = CheckpointStore(tmp_path).index.entries["epoch_1.pth"]
    metrics = next(call[-1] for call in hook.seen if call[0] == "after_val_epoch")
    assert entry.metrics["val/points/accuracy"] == metrics["points/accuracy"]
