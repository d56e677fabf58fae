import csv

import numpy as np
import pytest
import torch
from tests.readback import csv_rows
from tests.tiny import make_classifier, make_trainer

from hookloop.errors import HookError, MetricError
from hookloop.hooks import SavePredictions

NAMES = ["ant", "bee", "cow"]


def model_outputs(trainer):
    inputs, targets = (
        torch.cat(parts) for parts in zip(*trainer.run._internals.test_data[""], strict=True)
    )
    trainer.run.model.eval()
    with torch.no_grad():
        return trainer.run.model(inputs).numpy(), targets.numpy()


def trained(tmp_path, hook, **options):
    trainer = make_classifier(hooks=[hook], run_dir=tmp_path, **options)
    trainer.train()
    trainer.test()
    return trainer


def test_scores_have_a_column_per_class(tmp_path):
    trainer = trained(tmp_path, SavePredictions(class_names=NAMES))
    scores, targets = model_outputs(trainer)
    rows = csv_rows(tmp_path / "predictions" / "test_epoch_1.csv")
    assert list(rows[0]) == ["id", *(f"output_{name}" for name in NAMES), "targets"]
    assert [int(row["id"]) for row in rows] == list(range(12))
    found = [[float(row[f"output_{name}"]) for name in NAMES] for row in rows]
    assert np.allclose(found, scores) and [int(row["targets"]) for row in rows] == targets.tolist()


def test_parquet_holds_the_same(tmp_path):
    from pyarrow import parquet

    trainer = trained(tmp_path, SavePredictions(format="parquet"))
    table = parquet.read_table(tmp_path / "predictions" / "test_epoch_1.parquet").to_pydict()
    scores, targets = model_outputs(trainer)
    assert np.allclose(np.stack([table[f"output_{i}"] for i in range(3)], 1), scores)
    assert table["targets"] == targets.tolist()


def test_npz_holds_the_arrays_as_they_are(tmp_path):
    hook = SavePredictions(["output"], "npz", streams=["val", "test"])
    trainer = trained(tmp_path, hook, max_epochs=2)
    assert {path.name for path in (tmp_path / "predictions").iterdir()} == {
        "val_epoch_1.npz",
        "val_epoch_2.npz",
        "test_epoch_2.npz",
    }
    with np.load(tmp_path / "predictions" / "test_epoch_2.npz") as arrays:
        assert np.allclose(arrays["output"], model_outputs(trainer)[0])


def sequences(run, batch):
    return {"loss": run.model(batch["x"]).mean(), "path": batch["x"] * 2}


SEQUENCES = [
    {
        "x": torch.arange(8.0).reshape(2, 4),
        "name": ["a, b", "c"],  # A comma has to be quoted in CSV.
        "mask": torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]]),
    },
    {"x": torch.arange(4.0).reshape(1, 4), "name": ["d"], "mask": torch.tensor([[1, 0, 0, 0]])},
]


def test_sequences_have_a_row_per_position_outside_the_padding(tmp_path):
    hook = SavePredictions(["path"], id_variable="name", pad_mask="mask", streams=["train"])
    make_trainer(hooks=[hook], train_data=SEQUENCES, step=sequences, run_dir=tmp_path).train()
    with (tmp_path / "predictions" / "train_epoch_1.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["id", "index", "path"],
        ["a, b", "0", "0.0"], ["a, b", "1", "2.0"],
        ["c", "0", "8.0"], ["c", "1", "10.0"], ["c", "2", "12.0"], ["c", "3", "14.0"],
        ["d", "0", "0.0"],
    ]  # fmt: skip


def test_batches_of_different_length_fit_into_one_array(tmp_path):
    data = [{"x": torch.ones(2, 4), "y": torch.ones(2, length)} for length in (2, 5)]

    def step(run, batch):
        return {"loss": run.model(batch["x"]).mean()}

    hook = SavePredictions(["y"], "npz", streams=["train"])
    make_trainer(hooks=[hook], train_data=data, step=step, run_dir=tmp_path).train()
    with np.load(tmp_path / "predictions" / "train_epoch_1.npz") as arrays:
        assert arrays["y"].sum(1).tolist() == [2, 2, 5, 5]


def test_variables_that_do_not_belong_together_are_rejected(tmp_path):
    hook = SavePredictions(["loss", "targets"], streams=["val"])
    with pytest.raises(MetricError, match=r"\(loss: 1, targets: 4\)"):
        make_classifier(hooks=[hook], run_dir=tmp_path).train()


def test_a_format_that_does_not_exist_is_rejected():
    with pytest.raises(HookError, match="'parquet'"):
        SavePredictions(format="parket")


def test_names_that_match_no_variable_are_reported_and_nothing_is_lost(tmp_path, caplog):
    trained(tmp_path, SavePredictions(["output", "output"], class_names=["ant", "bee"]))
    assert "class_names has 2 names, but none of output, output has as many" in caplog.text
    rows = csv_rows(tmp_path / "predictions" / "test_epoch_1.csv")
    assert list(rows[0]) == ["id", "output_0", "output_1", "output_2"]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_what_a_shorter_batch_lacks_stays_empty(tmp_path, format):
    def step(run, batch):
        width = run.batch[0].shape[0]
        return {"loss": run.model(batch[0]).mean(), "x": batch[0][:, :1].expand(-1, width)}

    hook = SavePredictions(["x"], format, streams=["train"])
    data = [(torch.ones(size, 4), None) for size in (2, 3)]
    make_trainer(hooks=[hook], step=step, train_data=data, run_dir=tmp_path).train()
    path = tmp_path / "predictions" / f"train_epoch_1.{format}"
    if format == "csv":
        assert [row["x_2"] for row in csv_rows(path)] == ["", "", "1.0", "1.0", "1.0"]
    else:
        from pyarrow import parquet

        assert parquet.read_table(path)["x_2"].to_pylist() == [None, None, 1.0, 1.0, 1.0]
