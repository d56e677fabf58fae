import json
import logging
import sys

import numpy as np
import pytest

from hookloop.errors import HookError
from hookloop.hooks import (
    PlotLines,
    SavePredictions,
    WriteMLflow,
    WriteTensorBoard,
    WriteTrackio,
    WriteWandb,
)
from hookloop.writers.base import Writer, require, warn_of_failure
from hookloop.writers.records import Config, Scalars


class Keeping(Writer):
    name = "keeping"

    def __init__(self):
        self.records = []

    def write(self, records):
        self.records += records


def test_the_shortcuts_make_one_record_each():
    writer = Keeping()
    writer.write_scalar("loss", np.float32(0.5), 3)
    writer.write_image("sample", [[0.0, 1.0]], 4, "a caption")
    writer.write_config({"lr": 0.1})
    scalar, image, config = writer.records
    assert isinstance(scalar, Scalars) and scalar.values == {"loss": 0.5} and scalar.step == 3
    assert type(scalar.values["loss"]) is float
    assert image.pixels.ravel().tolist() == [0, 255]
    assert (image.name, image.step, image.caption) == ("sample", 4, "a caption")
    assert config == Config({"lr": 0.1})


def test_only_write_has_to_be_implemented():
    writer = Keeping()
    writer.flush()
    writer.close()
    assert writer.held() == {} and writer.held_name("val/loss") == "val/loss"
    with pytest.raises(TypeError, match="write"):
        Writer()


def test_a_failure_is_logged_with_the_writer_and_the_reason(caplog):
    with caplog.at_level(logging.WARNING, "hookloop"):
        warn_of_failure(Keeping(), ConnectionError("no route"))
    assert caplog.messages == [
        "The writer 'keeping' failed and is switched off for the rest of the run: "
        "ConnectionError: no route"
    ]


def test_an_installed_package_is_returned():
    assert require("json", extra="x", who="Me") is json


def test_the_package_that_another_one_lacks_is_named(tmp_path, monkeypatch):
    (tmp_path / "needs_more.py").write_text("import surely_absent.part\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(HookError, match=r"Me.*'surely_absent'.*hookloop\[x\]"):
        require("needs_more", extra="x", who="Me")


@pytest.mark.parametrize(
    ("make", "package", "extra"),
    [
        (WriteTensorBoard, "tensorboard", "tensorboard"),
        (WriteWandb, "wandb", "wandb"),
        (WriteMLflow, "mlflow", "mlflow"),
        (WriteTrackio, "trackio", "trackio"),
        (PlotLines, "matplotlib", "plots"),
        (lambda: SavePredictions(format="parquet"), "pyarrow", "parquet"),
    ],
)
def test_a_missing_package_is_reported_with_the_command_that_installs_it(
    make, package, extra, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)  # Makes Python raise ModuleNotFoundError.
    with pytest.raises(HookError, match=rf"'{package}', .* pip install 'hookloop\[{extra}\]'"):
        make()
