import pytest
from tests.names import iter_file
from tests.readback import csv_rows
from tests.tiny import make_classifier, make_data, make_trainer

from hookloop.errors import HookError
from hookloop.hooks import ComputeStats, SaveCheckpoint, WriteCSV, WriteMetrics


def test_a_row_per_epoch_has_all_numbers_of_the_epoch(tmp_path):
    hooks = [ComputeStats(["loss"]), WriteCSV()]
    trainer = make_classifier(hooks=hooks, run_dir=tmp_path, max_epochs=3, val_every="2 epochs")
    trainer.train()
    trainer.test()
    rows = csv_rows(tmp_path / "metrics.csv")
    assert [(row["epoch"], row["iter"]) for row in rows] == [
        ("1", "3"),
        ("2", "6"),
        ("3", "9"),
        ("3", "9"),
    ]
    assert [bool(row["val/accuracy"]) for row in rows] == [False, True, True, False]
    assert float(rows[0]["train/loss/mean"]) == pytest.approx(float(rows[0]["train/loss"]))
    assert rows[0]["lr"] == "0.1" and rows[3]["phase"] == "test" and rows[3]["test/loss"]


def test_a_run_that_ends_within_an_epoch_gets_a_last_row(tmp_path):
    make_classifier(hooks=[WriteCSV()], run_dir=tmp_path, max_iters=5).train()
    rows = csv_rows(tmp_path / "metrics.csv")
    assert [row["iter"] for row in rows] == ["3", "5"]
    assert rows[1]["train/loss"] and rows[1]["val/loss"]


def test_rows_can_be_written_by_iterations(tmp_path):
    make_classifier(hooks=[WriteCSV("steps.csv", every=2)], run_dir=tmp_path, max_epochs=2).train()
    rows = csv_rows(tmp_path / "steps.csv")
    places = [(row["phase"], row["iter"]) for row in rows]
    first = [("train", "2"), ("train", "3"), ("val", "3")]
    assert places == [*first, ("train", "4"), ("train", "6"), ("train", "6"), ("val", "6")]
    assert [row["iter"] for row in rows if row["train/loss"]] == ["2", "4", "6"]
    assert [row["iter"] for row in rows if row["train_epoch/loss"]] == ["3", "6"]


def test_rows_can_skip_epochs_and_columns_can_be_chosen(tmp_path):
    hook = WriteCSV(every="2 epochs", metrics=["val/*"], delimiter=";")
    make_classifier(hooks=[hook], run_dir=tmp_path, max_epochs=4).train()
    rows = csv_rows(tmp_path / "metrics.csv", ";")
    assert [row["epoch"] for row in rows] == ["2", "4"]
    assert list(rows[0]) == ["time", "phase", "iter", "epoch", "val/loss", "val/accuracy"]


@pytest.mark.slow
@pytest.mark.parametrize("iteration", [2, 3, 4, 6])
def test_a_resumed_run_writes_the_same_table(tmp_path, iteration):
    def train(name, **options):
        hooks = [WriteCSV(), SaveCheckpoint(every="1 iter", keep=None)]
        make_classifier(hooks=hooks, run_dir=tmp_path / name, **options).train()

    train("whole", max_epochs=3)
    train("parts", max_iters=max(iteration, 3))
    checkpoint = tmp_path / "parts" / iter_file(iteration)
    train("parts", max_epochs=3, resume=checkpoint)

    def table(name):
        rows = csv_rows(tmp_path / name / "metrics.csv")
        return [{key: value for key, value in row.items() if key != "time"} for row in rows]

    assert table("parts") == table("whole")


def test_a_file_of_another_run_is_rejected(tmp_path):
    file = tmp_path / "all.csv"
    make_trainer(hooks=[WriteCSV(file)], run_dir=tmp_path / "one").train()
    before = file.read_text(encoding="utf-8")
    with pytest.raises(HookError, match="holds the rows of another run: choose another file"):
        make_trainer(hooks=[WriteCSV(file)], run_dir=tmp_path / "two").train()
    assert file.read_text(encoding="utf-8") == before


def test_wrong_arguments_are_rejected():
    with pytest.raises(HookError, match="delimiter must be one character"):
        WriteCSV(delimiter="; ")
    with pytest.raises(HookError, match="WriteCSV.*'ten'"):
        WriteCSV(every="ten")


def test_the_file_may_be_in_a_subdirectory(tmp_path):
    make_trainer(hooks=[WriteCSV(file="tables/run.csv")], run_dir=tmp_path).train()
    assert len(csv_rows(tmp_path / "tables" / "run.csv")) == 1


def test_a_run_killed_before_its_first_checkpoint_starts_its_file_again(tmp_path):
    options = {"val_data": make_data(), "val_every.at_start": True, "run_dir": tmp_path}

    def hooks():
        return [WriteMetrics(), WriteCSV()]

    make_trainer(hooks=hooks(), **options).train()
    once = csv_rows(tmp_path / "metrics.csv")
    make_trainer(hooks=hooks(), resume=True, **options).train()
    twice = csv_rows(tmp_path / "metrics.csv")
    assert [row["iter"] for row in twice] == [row["iter"] for row in once]
