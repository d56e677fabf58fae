"""The predictions for each example as a table."""

import numpy as np
import pytest
import torch
from tests.emloop.looking import train

from hookloop_dialects.emloop.hooks import LogitsToCsv, SequenceToCsv


@pytest.fixture
def file(tmp_path):
    return tmp_path / "table.csv"


def test_logits_have_a_row_per_example_and_a_column_per_class(file):
    hook = LogitsToCsv("logits", ["cat", "dog"], "ids", str(file), streams=["valid"])
    hook.after_batch("train", {"ids": ["x"], "logits": [[9, 9]]})
    hook.after_batch("valid", {"ids": ["a", "b, c"], "logits": np.array([[0.5, 1], [2, 3]])})
    hook.after_batch("valid", {"ids": [7], "logits": [[4, 5]]})
    hook.after_epoch(epoch_id=1)
    assert file.read_text() == 'ids,cat,dog\na,0.5,1.0\n"b, c",2.0,3.0\n7,4,5\n'


def test_the_file_holds_the_last_epoch(file):
    hook = LogitsToCsv("logits", ["cat"], "ids", str(file))
    for epoch in (1, 2):
        hook.after_batch("valid", {"ids": [epoch], "logits": [[epoch]]})
        hook.after_epoch(epoch_id=epoch, epoch_data={})
    assert file.read_text() == "ids,cat\n2,2\n"


def test_an_epoch_without_rows_writes_nothing(file):
    LogitsToCsv("logits", ["cat"], "ids", str(file)).after_epoch(epoch_id=1)
    assert not file.exists()


def test_a_wrong_number_of_classes_is_an_error(file):
    hook = LogitsToCsv("logits", ["cat"], "ids", str(file))
    with pytest.raises(AssertionError, match="2 numbers for 1 class names"):
        hook.after_batch("valid", {"ids": [1], "logits": [[1, 2]]})
    with pytest.raises(AssertionError, match="2 ids and 1 rows"):
        hook.after_batch("valid", {"ids": [1, 2], "logits": [[1]]})
    with pytest.raises(AssertionError, match="at least one class name"):
        LogitsToCsv("logits", [], "ids", str(file))


def test_sequences_have_a_row_per_example_and_index(file):
    hook = SequenceToCsv(["a", "b"], "ids", str(file))
    hook.after_batch("valid", {"ids": ["x", "y"], "a": [[1, 2], [3]], "b": [[4, 5], [6]]})
    hook.after_epoch(epoch_id=1)
    assert file.read_text().splitlines() == ["ids,index,a,b", "x,0,1,4", "x,1,2,5", "y,0,3,6"]


def test_sequences_of_different_lengths_are_an_error(file):
    hook = SequenceToCsv(["a", "b"], "ids", str(file))
    with pytest.raises(AssertionError, match=r"example 0 have lengths \[2, 1\]"):
        hook.after_batch("valid", {"ids": ["x"], "a": [[1, 2]], "b": [[4]]})
    with pytest.raises(AssertionError, match="differ in their examples"):
        hook.after_batch("valid", {"ids": ["x"], "a": [[1, 2]], "b": [[4, 5], [6, 7]]})
    masked = SequenceToCsv(["a"], "ids", str(file), pad_mask_variable="mask")
    with pytest.raises(AssertionError, match=r"lengths \[2, 3\]"):
        masked.after_batch("valid", {"ids": ["x"], "a": [[1, 2]], "mask": [[1, 0, 1]]})
    with pytest.raises(AssertionError, match="at least one variable"):
        SequenceToCsv([], "ids", str(file))


def test_sequences_are_written_without_their_padding(tmp_path, file):
    def step(run, batch):
        mask = torch.tensor([[True, True, False], [True, False, False]])
        loss = run.model(batch["x"]).square().mean()
        return {"loss": loss, "curve": torch.arange(6.0).reshape(2, 3), "mask": mask}

    batch = {"x": torch.ones(2, 4), "ids": ["a/b", "c"]}
    hook = SequenceToCsv(["curve"], "ids", str(file), "mask", ["valid"])
    train(tmp_path, hook, train_data=[batch], val_data=[batch], step=step)
    assert file.read_text().splitlines() == [
        "ids,index,curve", "a/b,0,0.0", "a/b,1,1.0", "c,0,3.0",
    ]  # fmt: skip
