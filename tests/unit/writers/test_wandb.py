import pytest
from tests.readback import wandb_history

from hookloop.writers.records import Histogram, Image, Table, Text
from hookloop.writers.wandb import Wandb


@pytest.mark.slow
def test_an_offline_run_has_every_record_on_disk(tmp_path, capsys):
    writer = Wandb(tmp_path, "digits", mode="offline", name="first", tags=["a"])
    writer.write_config({"optimizer": {"lr": 0.1}})
    writer.write_scalar("train/loss", 0.5, 3)
    writer.write(
        [
            Image("val/sample", [[0.0, 1.0]], 3, "a caption"),
            Histogram("weights", [1.0, 2.0], 3),
            Text("note", "<b>", 3),
            Table("scores", ["a"], [[1]], 3),
        ]
    )
    writer.close()
    rows = wandb_history(tmp_path)
    assert rows[0]["train/loss"] == 0.5 and all(row["iter"] == 3 for row in rows)
    (run,) = tmp_path.glob(f"wandb/offline-run-*-{writer.run_id}")
    assert len(list(run.glob("files/media/images/val/sample*.png"))) == 1
    assert len(list(run.glob("files/media/table/scores*.json"))) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_a_continued_run_keeps_its_id_and_accepts_earlier_steps(tmp_path):
    first = Wandb(tmp_path, "digits", mode="offline")
    first.write_scalar("loss", 1.0, 10)
    first.close()
    again = Wandb(tmp_path, "digits", mode="offline", run_id=first.run_id)
    again.write_scalar("loss", 0.5, 8)
    again.close()
    assert again.run_id == first.run_id
    assert [(row["iter"], row["loss"]) for row in wandb_history(tmp_path)] == [(10, 1.0), (8, 0.5)]
