import logging

import pytest
import torch
from tests.tiny import make_classes, make_classifier, make_data, make_trainer

from hookloop.errors import ArgumentError, HookError, MetricError
from hookloop.hooks import AccumulateVariables, PlotLines, SaveCheckpoint, VisualizePredictions


class Keep(AccumulateVariables):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.kept = []

    def summarize(self, run, stream, values):
        sizes = {name: sum(map(self._count, parts)) for name, parts in values.items()}
        self.kept.append((stream, run.progress.epoch, sizes))

    @staticmethod
    def _count(part):
        return part.numel() if isinstance(part, torch.Tensor) else len(part)


def test_each_stream_is_summarized_when_it_is_done():
    hook = Keep(["loss", "output", "targets", "inputs"])
    streams = {"clean": make_classes(), "noisy": make_classes(samples=8)}
    trainer = make_classifier(hooks=[hook], val_data=streams, max_epochs=2)
    trainer.train()
    trainer.test()
    assert [kept[:2] for kept in hook.kept] == [
        ("train", 1), ("val/clean", 1), ("val/noisy", 1),
        ("train", 2), ("val/clean", 2), ("val/noisy", 2), ("test", 2),
    ]  # fmt: skip
    assert hook.kept[0][2] == {"loss": 3, "output": 36, "targets": 12, "inputs": 48}
    assert hook.kept[2][2]["targets"] == 8


def test_no_microbatch_is_missed():
    hook = Keep(["targets"], streams=["train"])
    make_classifier(hooks=[hook], accumulate=2).train()
    assert hook.kept == [("train", 1, {"targets": 12})]


def test_entries_of_mappings_are_variables():
    def step(run, batch):
        output = run.model(batch["x"])
        return {"loss": output.mean(), "scores": output}

    data = [{"x": torch.ones(2, 4), "name": ["a", "b"]}] * 3
    hook = Keep(["scores", "name", "x"])
    make_trainer(hooks=[hook], train_data=data, step=step).train()
    assert hook.kept == [("train", 1, {"scores": 6, "name": 6, "x": 24})]


def test_a_variable_that_does_not_exist_is_rejected_after_the_first_batch():
    trainer = make_classifier(hooks=[Keep(["targts"])])
    message = r"no 'targts' .* Did you mean 'targets'\? There are: loss, inputs, targets, output\."
    with pytest.raises(MetricError, match=message):
        trainer.train()
    assert trainer.run.progress.iter == 1


def test_an_epoch_cut_by_a_checkpoint_is_completed_after_a_resume(tmp_path):
    def train(**options):
        hook = Keep(["targets"], streams=["train"])
        hooks = [hook, SaveCheckpoint(every="1 iter")]
        make_classifier(hooks=hooks, run_dir=tmp_path, **options).train()
        return hook.kept

    assert train(max_iters=2) == []
    assert train(max_epochs=1, resume=True) == [("train", 1, {"targets": 12})]


def test_memory_is_bounded_and_it_warns_once(caplog):
    hook = Keep(["output"], streams=["train"], limit=15)
    with caplog.at_level(logging.WARNING, "hookloop"):
        make_classifier(hooks=[hook]).train()
    # Batches of 12 numbers: the second one passes the limit and is still kept whole.
    assert hook.kept == [("train", 1, {"output": 24})]
    assert len(caplog.messages) == 1 and "at most 15 numbers of 'train'" in caplog.text


def test_a_name_instead_of_a_list_is_rejected():
    with pytest.raises(ArgumentError, match="must be a list of names"):
        AccumulateVariables("loss")


@pytest.mark.parametrize(
    "hook",
    [
        lambda: AccumulateVariables(["loss"], streams=["claen"]),
        lambda: PlotLines(streams=["claen"]),
        lambda: VisualizePredictions(streams=["claen"]),
    ],
)
def test_a_stream_that_does_not_exist_is_rejected(hook, tmp_path):
    options = {"val_data": {"clean": make_data(4)}, "run_dir": tmp_path}
    with pytest.raises(HookError, match="'claen'.*'clean'"):
        make_trainer(hooks=[hook()], **options).train()
