"""The confusion matrix of each stream and epoch."""

from types import SimpleNamespace

import numpy as np
import pytest

from hookloop_dialects.emloop.hooks import SaveConfusionMatrix


def make(tmp_path, dataset=None, **options):
    hook = SaveConfusionMatrix(str(tmp_path), dataset, **options)
    labels, predictions = [0, 1, 1, 1], [0, 0, 1, 1]
    batch = {"labels": labels, "predictions": predictions, "mask": [True, False, True, True]}
    hook.after_batch("train", batch)
    hook.after_batch("valid", batch)
    return hook


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_file_is_written_per_stream_and_epoch(tmp_path):
    make(tmp_path).after_epoch(epoch_id=7, epoch_data={})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "confusion_matrix_epoch_7_train.png",
        "confusion_matrix_epoch_7_valid.png",
    ]


def test_a_picture_can_be_stored_in_the_epochs_data(tmp_path):
    epoch_data = {"train": {}, "valid": {}}
    make(tmp_path, figure_action="store").after_epoch(epoch_id=1, epoch_data=epoch_data)
    picture = epoch_data["valid"]["confusion_heatmap"]
    assert picture.ndim == 3 and picture.shape[2] == 3 and picture.dtype == np.uint8
    assert not list(tmp_path.iterdir())


def test_cells_show_the_share_of_the_true_class_and_the_count(tmp_path):
    hook = make(tmp_path)
    counts = np.array([[1, 0], [1, 3]])
    assert texts(hook._draw(counts)) == ["1.00 / 1", "0.00 / 0", "0.25 / 1", "0.75 / 3"]


def test_a_class_without_examples_has_zeros(tmp_path):
    assert texts(make(tmp_path)._draw(np.array([[2, 0], [0, 0]])))[2:] == ["0.00 / 0"] * 2


@pytest.mark.parametrize(
    ("dataset", "options", "count"),
    [
        (None, {}, None),
        (None, {"classes_names": ["a", "b", "c"]}, 3),
        (SimpleNamespace(num_classes=lambda: 5), {}, 5),
        (SimpleNamespace(classes_names=lambda: ["a", "b"]), {}, 2),
        (SimpleNamespace(count=lambda: 4), {"num_classes_method_name": "count"}, 4),
    ],
)
def test_classes_are_known_from_the_arguments_or_the_data_set(tmp_path, dataset, options, count):
    assert make(tmp_path, dataset, **options)._num_classes == count


def test_examples_can_be_masked_out(tmp_path, monkeypatch):
    drawn = []
    hook = make(tmp_path, mask_name="mask")
    draw = hook._draw
    monkeypatch.setattr(hook, "_draw", lambda counts: drawn.append(counts.tolist()) or draw(counts))
    hook.after_epoch(epoch_id=1, epoch_data={})
    assert drawn == [[[1, 0], [0, 2]]] * 2


def test_an_unknown_action_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="figure_action='show': write save or store"):
        make(tmp_path, figure_action="show")
