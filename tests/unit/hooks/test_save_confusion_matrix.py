import numpy as np
import pytest
from tests.readback import csv_rows, events, png
from tests.tiny import make_classifier

from hookloop.errors import HookError, MetricError
from hookloop.hooks import SaveConfusionMatrix, WriteTensorBoard

NAMES = ["ant", "bee", "cow"]


@pytest.mark.slow
@pytest.mark.parametrize("normalize", [True, False])
def test_a_picture_and_a_table_are_saved_for_each_evaluation(tmp_path, normalize):
    hook = SaveConfusionMatrix(class_names=NAMES, normalize=normalize)
    trainer = make_classifier(hooks=[hook], run_dir=tmp_path, max_epochs=2)
    trainer.train()
    trainer.test()
    names = {path.name for path in (tmp_path / "confusion").iterdir()}
    stems = ["val_epoch_1", "val_epoch_2", "test_epoch_2"]
    assert names == {f"{stem}.{end}" for stem in stems for end in ("png", "csv")}
    rows = csv_rows(tmp_path / "confusion" / "val_epoch_2.csv")
    counts = np.array([[int(row[name]) for name in NAMES] for row in rows])
    assert [row["true"] for row in rows] == NAMES
    assert counts.sum() == 12
    share = np.trace(counts) / 12
    assert trainer.run.metrics.latest("val/accuracy") == pytest.approx(share)
    picture = png(tmp_path / "confusion" / "val_epoch_2.png")
    assert picture.shape[2] == 3 and picture.std() > 10


@pytest.mark.slow
def test_the_picture_reaches_the_writers(tmp_path):
    hooks = [SaveConfusionMatrix(), WriteTensorBoard()]
    make_classifier(hooks=hooks, run_dir=tmp_path).train()
    found = events(tmp_path / "tensorboard")
    assert found.Tags()["images"] == ["val/confusion"]
    assert "val/confusion/text_summary" in found.Tags()["tensors"]


def test_too_few_names_are_rejected(tmp_path):
    hook = SaveConfusionMatrix(class_names=["ant", "bee"])
    with pytest.raises(MetricError, match="Class 2 occurs.*2 classes"):
        make_classifier(hooks=[hook], run_dir=tmp_path).train()


def test_colors_that_do_not_exist_are_rejected():
    with pytest.raises(HookError, match="'Bleus'"):
        SaveConfusionMatrix(colors="Bleus")


@pytest.mark.slow
def test_validations_within_an_epoch_do_not_overwrite_each_other(tmp_path):
    options = {"val_every": 1, "max_epochs": None, "max_iters": 2, "run_dir": tmp_path}
    make_classifier(hooks=[SaveConfusionMatrix()], **options).train()
    names = sorted(path.name for path in (tmp_path / "confusion").glob("*.csv"))
    assert names == ["val_iter_1.csv", "val_iter_2.csv"]
