"""No CSV file that is written has a formula in it, in the header or below."""

import csv
import io

import numpy as np
from tests.tiny import make_trainer

from hookloop.engine.hook import Hook
from hookloop.hooks import WriteCSV
from hookloop.writers.csv import Csv
from hookloop.writers.predictions import writing
from hookloop.writers.records import Scalars, Table

NAMES = ["=cmd|' /C calc'!A0", "+sum", "-val/loss", "@user"]


def cells(text):
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


def formulas(text):
    found = [one for one in cells(text) if one[:1] in ("=", "+", "-", "@", "\t", "\r")]
    return [one for one in found if not one[1:].replace(".", "").replace("e-", "").isdigit()]


def test_a_table_of_a_hook():
    text = Table("t", NAMES, [["=1+1", -1.5, "-2.5", "ok"]]).to_csv()
    assert formulas(text) == []
    assert cells(text)[4:] == ["'=1+1", "-1.5", "-2.5", "ok"]


def test_the_numbers_of_a_run_are_continued_under_the_same_columns(tmp_path):
    for step in (1, 2):
        file = Csv(tmp_path / "m.csv")
        file.write([Scalars(dict.fromkeys(NAMES, -0.5), step, 0, "train", "iter")])
        file.close()
    text = (tmp_path / "m.csv").read_text()
    assert formulas(text) == [] and len(text.splitlines()) == 3
    file = Csv(tmp_path / "m.csv")
    assert list(file.read()[0])[4:] == NAMES
    file.close()


def test_the_file_of_a_training(tmp_path):
    class Put(Hook):
        writes = ("=evil",)

        def after_train_iter(self, run):
            run.metrics.put("=evil", -1.0)

    make_trainer(hooks=[WriteCSV(), Put()], run_dir=tmp_path).train()
    text = (tmp_path / "metrics.csv").read_text()
    assert formulas(text) == [] and "'=evil" in cells(text)


def test_predictions(tmp_path):
    with writing(tmp_path / "p.csv") as write:
        write.add({"=name": np.array(NAMES), "value": -np.ones(len(NAMES))})
        write.is_whole = True
    text = (tmp_path / "p.csv").read_text()
    assert formulas(text) == [] and "'@user" in cells(text) and "-1.0" in cells(text)
