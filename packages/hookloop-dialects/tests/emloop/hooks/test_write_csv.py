"""The epoch's data as a table."""

import pytest

from hookloop_dialects.emloop.hooks import WriteCSV


def write(tmp_path, *epochs, **options):
    tmp_path.mkdir(exist_ok=True)
    hook = WriteCSV(str(tmp_path), **options)
    for number, data in enumerate(epochs):
        hook.after_epoch(epoch_id=number, epoch_data=data)
    return (tmp_path / "training.csv").read_text().splitlines(), hook


def test_a_line_per_epoch_with_a_column_per_stream_and_variable(tmp_path):
    epoch = {"train": {"a": 1, "b": {"mean": 2.5, "max": 9}}, "valid": {"a": 3, "b": 4}}
    lines, _ = write(tmp_path, epoch, epoch)
    assert lines == [
        '"epoch_id",train_a,train_b,valid_a,valid_b', "0,1,2.5,3,4", "1,1,2.5,3,4",
    ]  # fmt: skip


def test_variables_delimiter_and_name_can_be_chosen(tmp_path):
    hook = WriteCSV(str(tmp_path), "a.csv", ";", variables=["b"])
    hook.after_epoch(epoch_id=5, epoch_data={"train": {"a": 1, "b": "x;y"}})
    assert (tmp_path / "a.csv").read_text() == '"epoch_id";train_b\n5;"x;y"\n'


@pytest.mark.parametrize(
    ("value", "cell"),
    [({"nanmean": 1.5}, "1.5"), ({"max": 2}, "-"), ([1, 2], "-"), ("text", "text"), (None, "-")],
)
def test_the_cell_of_a_value(value, cell, tmp_path):
    lines, _ = write(tmp_path, {"train": {"x": value}}, default_value="-")
    assert lines[1] == f"0,{cell}"


def test_what_is_not_a_number_is_handled_as_requested(tmp_path, caplog):
    write(tmp_path, {"train": {"x": [1]}}, on_unknown_type="warn")
    assert "'x' is not a single number" in caplog.text
    with pytest.raises(TypeError, match="'x' is not a single number"):
        write(tmp_path, {"train": {"x": [1]}}, on_unknown_type="error")


def test_what_is_missing_is_handled_as_requested(tmp_path, caplog):
    epochs = [{"train": {"x": 1}, "valid": {"x": 2}}, {"train": {"x": 3}}]
    with pytest.raises(KeyError, match="there is no 'valid_x'"):
        write(tmp_path / "error", *epochs)
    lines, _ = write(tmp_path / "default", *epochs, on_missing_variable="default")
    assert lines[2] == "1,3," and not caplog.messages
    write(tmp_path / "warn", *epochs, on_missing_variable="warn")
    assert "there is no 'valid_x'" in caplog.text


def test_a_resumed_run_writes_no_second_header(tmp_path):
    epoch = {"train": {"x": 1}}
    _, first = write(tmp_path, epoch)
    again = WriteCSV(str(tmp_path))
    again.load_state_dict(first.state_dict())
    again.after_epoch(epoch_id=1, epoch_data=epoch)
    lines = (tmp_path / "training.csv").read_text().splitlines()
    assert lines == ['"epoch_id",train_x', "0,1", "1,1"]


@pytest.mark.parametrize("argument", ["on_unknown_type", "on_missing_variable"])
def test_an_unknown_action_is_rejected(argument, tmp_path):
    with pytest.raises(AssertionError, match="explode"):
        WriteCSV(str(tmp_path), **{argument: "explode"})
