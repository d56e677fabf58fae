"""The epoch's data for TensorBoard."""

import numpy as np
import pytest
from tests.readback import tensorboard_points

from hookloop.errors import HookError
from hookloop_dialects.emloop.hooks import WriteTensorBoard


def write(tmp_path, *epochs, **options):
    hook = WriteTensorBoard(str(tmp_path), **options)
    for number, data in enumerate(epochs):
        hook.after_epoch(epoch_id=number, epoch_data=data)
    hook.after_training(True)
    return hook


def test_numbers_and_means_are_written_with_the_epoch_as_the_step(tmp_path):
    epochs = [{"train": {"x": value, "y": {"mean": 2 * value, "max": 9}}} for value in (1, 2.5)]
    write(tmp_path, *epochs)
    assert tensorboard_points(tmp_path, "train/x") == [(0, 1), (1, 2.5)]
    assert tensorboard_points(tmp_path, "train/y") == [(0, 2), (1, 5)]


def test_other_values_are_handled_as_requested(tmp_path, caplog):
    data = {"train": {"x": [1, 2], "y": {"max": 3}}}
    write(tmp_path / "a", data)
    assert [line for line in caplog.messages if "is not a number" in line] == [
        "WriteTensorBoard: 'x' is not a number.", "WriteTensorBoard: 'y' is not a number.",
    ]  # fmt: skip
    caplog.clear()
    write(tmp_path / "b", data, on_unknown_type="ignore")
    assert not caplog.messages
    with pytest.raises(TypeError, match="'x' is not a number"):
        write(tmp_path / "c", data, on_unknown_type="error")


def test_pictures_are_written_and_a_missing_one_is_an_error(tmp_path):
    pictures = {"image_variables": ["p"], "on_unknown_type": "error"}
    write(tmp_path / "a", {"train": {"p": np.zeros((4, 6, 3), np.uint8)}}, **pictures)
    (file,) = (tmp_path / "a").glob("events.out.tfevents*")
    assert b"PNG" in file.read_bytes()
    with pytest.raises(KeyError, match="there is no 'p'"):
        write(tmp_path / "b", {"train": {}}, **pictures)


def test_a_hook_that_is_only_made_leaves_no_file(tmp_path):
    hook = WriteTensorBoard(str(tmp_path), flush_secs=1)
    hook.after_training(True)
    assert not list(tmp_path.iterdir())


def test_a_graph_is_rejected_with_the_native_hook():
    with pytest.raises(HookError, match=r"hookloop.hooks.WriteTensorBoard\(graph=True\)"):
        WriteTensorBoard(".", visualize_graph=True)
