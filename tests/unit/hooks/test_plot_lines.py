import logging

import pytest
import torch
from tests.readback import png
from tests.tiny import make_classifier, make_trainer

from hookloop.errors import ArgumentError, HookError
from hookloop.hooks import PlotLines


@pytest.mark.slow
def test_each_example_gets_a_picture(tmp_path):
    data = [{"x": torch.rand(3, 4), "name": ["a/b", "c", "d"], "mask": torch.ones(3, 4)}] * 2

    def step(run, batch):
        return {"loss": run.model(batch["x"]).mean(), "path": batch["x"] * 2}

    hook = PlotLines(
        ["path", "x"], 4, id_variable="name", pad_mask="mask", limits=(0, 2), streams=["val"]
    )
    make_trainer(hooks=[hook], train_data=data, val_data=data, step=step, run_dir=tmp_path).train()
    folder = tmp_path / "plots" / "epoch_1" / "val"
    assert {path.name for path in folder.iterdir()} == {
        "a_b_path_x.png",
        "c_path_x.png",
        "d_path_x.png",
    }
    assert png(folder / "c_path_x.png").shape == (400, 700, 3)


@pytest.mark.slow
def test_no_more_examples_than_asked_for_are_drawn(tmp_path):
    trainer = make_classifier(hooks=[PlotLines(["output"], 2)], run_dir=tmp_path)
    trainer.train()
    trainer.test()
    assert len(list(tmp_path.glob("plots/epoch_1/val/*.png"))) == 2
    assert len(list(tmp_path.glob("plots/epoch_1/test/*.png"))) == 2


def test_a_variable_that_does_not_exist_switches_the_hook_off_with_a_hint(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "hookloop"):
        make_classifier(hooks=[PlotLines(["outptu"])], run_dir=tmp_path).train()
    assert "no sequence 'outptu'" in caplog.text and "Did you mean 'output'" in caplog.text


def test_bad_parameters_are_rejected():
    with pytest.raises(ArgumentError, match="must be a list of names"):
        PlotLines("output")
    with pytest.raises(HookError, match="examples must be at least 1"):
        PlotLines(examples=0)
