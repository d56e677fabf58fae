"""One suite for every writer: the same records in, the same numbers out."""

import math

import numpy as np
import pytest
import torch
from tests import readback

from hookloop.writers.background import Background
from hookloop.writers.base import Multi
from hookloop.writers.clearml import ClearML
from hookloop.writers.comet import Comet
from hookloop.writers.csv import Csv
from hookloop.writers.jsonl import JsonLines
from hookloop.writers.media import MediaFiles
from hookloop.writers.mlflow import MLflow
from hookloop.writers.records import Config, Graph, Histogram, Image, Scalars, Table, Text
from hookloop.writers.tensorboard import TensorBoard
from hookloop.writers.trackio import Trackio
from hookloop.writers.wandb import Wandb


class Case:
    """How to open a writer, for the first time and again, and how to read its numbers."""

    def __init__(self, directory):
        self.directory = directory


class JsonLinesCase(Case):
    def open(self):
        return JsonLines(self.directory / "metrics.jsonl")

    def read(self, name):
        return readback.jsonl_points(self.directory / "metrics.jsonl", name)


class CsvCase(Case):
    def open(self):
        return Csv(self.directory / "metrics.csv")

    def read(self, name):
        return readback.csv_points(self.directory / "metrics.csv", name)


class TensorBoardCase(Case):
    def open(self):
        return TensorBoard(self.directory)

    def read(self, name):
        return readback.tensorboard_points(self.directory, name)


class WandbCase(Case):
    run_id = None

    def open(self):
        writer = Wandb(self.directory, "contract", run_id=self.run_id, mode="offline")
        assert self.run_id in (None, writer.run_id)
        self.run_id = writer.run_id
        return writer

    def read(self, name):
        return readback.wandb_points(self.directory, name)


class MLflowCase(Case):
    run_id = None

    def open(self):
        writer = MLflow(f"file:{self.directory}", run_id=self.run_id)
        self.run_id = writer.run_id
        return writer

    def read(self, name):
        return readback.mlflow_points(self.directory, self.run_id, name)


class TrackioCase(Case):
    def open(self):
        return Trackio("contract", run_name=self.directory.parent.name)

    def read(self, name):
        return readback.trackio_points("contract", self.directory.parent.name, name)


class CometCase(Case):
    run_id = None

    def open(self):
        writer = Comet(self.directory, "contract", run_id=self.run_id, mode="offline", name="one")
        assert self.run_id in (None, writer.run_id)
        self.run_id = writer.run_id
        return writer

    def read(self, name):
        return readback.comet_points(self.directory, name)


class ClearMLCase(Case):
    run_id = None

    def open(self):
        writer = ClearML(self.directory, "contract", run_id=self.run_id, mode="offline", name="one")
        assert self.run_id in (None, writer.run_id)
        self.run_id = writer.run_id
        return writer

    def read(self, name):
        return readback.clearml_points(self.directory, name)


class MultiCase(JsonLinesCase):
    def open(self):
        return Multi(super().open(), MediaFiles(self.directory))


class BackgroundCase(JsonLinesCase):
    def open(self):
        return Background(super().open())


CASES = [
    JsonLinesCase,
    CsvCase,
    TensorBoardCase,
    WandbCase,
    MLflowCase,
    TrackioCase,
    CometCase,
    ClearMLCase,
    MultiCase,
    BackgroundCase,
]

ONE_OF_EACH = [
    Config({"optimizer": {"type": "SGD", "lr": 0.1}, "sizes": [8, 16], "note": None}),
    Scalars({"train/loss": 0.5, "lr": 0.1}, step=1),
    Image("val/grey", np.linspace(0, 1, 12).reshape(3, 4), step=1),
    Image("val/colour", torch.rand(3, 4, 5), step=1, caption="a picture"),
    Text("notes", "**bold** & <plain>", step=1),
    Histogram("weights", torch.randn(100), step=1),
    Histogram("nothing", [], step=1),
    Table("scores", ["class", "count"], [["cat", 3], ["dog, the", 4]], step=1),
    Graph(torch.nn.Linear(2, 1), torch.zeros(1, 2)),
    Scalars({"val/accuracy": 0.25}, step=1, phase="val", span="epoch"),
]


SERVICES = (WandbCase, MLflowCase, TrackioCase, CometCase, ClearMLCase)
PARAMS = [
    pytest.param(
        case,
        id=case.__name__.removesuffix("Case"),
        marks=[pytest.mark.slow] if case in SERVICES else [],  # Their packages take seconds.
    )
    for case in CASES
]


@pytest.fixture(params=PARAMS)
def case(request, tmp_path):
    directory = tmp_path / "written"
    directory.mkdir()
    return request.param(directory)


def test_it_accepts_every_kind_of_record(case):
    writer = case.open()
    writer.write(ONE_OF_EACH)
    writer.flush()
    writer.close()
    assert case.read("train/loss") == [(1, 0.5)]
    assert case.read("val/accuracy") == [(1, 0.25)]


def test_it_keeps_the_order(case):
    writer = case.open()
    for step in range(1, 21):
        writer.write([Scalars({"train/loss": float(step)}, step)])
    writer.close()
    assert case.read("train/loss") == [(step, float(step)) for step in range(1, 21)]


def test_it_continues_where_it_ended(case):
    for step in (1, 2):
        writer = case.open()
        writer.write_scalar("train/loss", step / 2, step)
        writer.close()
    assert case.read("train/loss") == [(1, 0.5), (2, 1.0)]


def test_the_shortcuts_write_records(case):
    writer = case.open()
    writer.write_config({"lr": 0.1})
    writer.write_scalar("psnr", 30, 7)
    writer.write_image("render", torch.rand(3, 8, 8), 7)
    writer.close()
    assert case.read("psnr") == [(7, 30.0)]


def test_nan_and_infinity_do_no_harm(case):
    writer = case.open()
    writer.write([Scalars({"train/loss": math.nan, "train/norm": math.inf}, 1)])
    writer.write_scalar("train/loss", 0.5, 2)
    writer.close()
    assert case.read("train/loss")[-1] == (2, 0.5)


def test_an_empty_list_of_records_is_allowed(case):
    writer = case.open()
    writer.write([])
    writer.close()
