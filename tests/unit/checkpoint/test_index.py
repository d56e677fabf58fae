"""An index of a stranger: whatever it holds, the files are still found."""

import json
import math
from pathlib import Path

import pytest
import torch
from tests.names import epoch_file

from hookloop.checkpoint.saving.retention import Keep
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.runs.checkpoint_names import INDEX, LAST

ENTRY = {"name": epoch_file(1), "iter": 3, "epoch": 1, "size": 0, "crc32": 0, "kind": "periodic"}
WRONG = (None, "text", -1, 10**30, math.nan, [], {}, [1], {"a": 1}, True)
CRAFTED = [
    *({"checkpoints": [{**ENTRY, name: wrong}]} for name in ENTRY for wrong in WRONG),
    *({"checkpoints": [{**ENTRY, "metrics": wrong}]} for wrong in WRONG),
    *({"checkpoints": [{**ENTRY, "owners": wrong}]} for wrong in WRONG),
    *({"checkpoints": wrong} for wrong in WRONG),
    *WRONG,
]


def make(location: Path) -> None:
    torch.save({"model": {}, "progress": {"iter": 3}}, location / epoch_file(1))


def test_no_index_keeps_a_checkpoint_from_being_found(tmp_path: Path) -> None:
    make(tmp_path)
    size = (tmp_path / epoch_file(1)).stat().st_size
    for crafted in CRAFTED:
        (tmp_path / INDEX).write_text(json.dumps(crafted).replace('"size": 0', f'"size": {size}'))
        store = CheckpointStore(tmp_path)
        assert all(isinstance(one.iter, int) for one in store.index.entries.values())
        store.prune(Keep("x", "periodic", 1))
        assert (tmp_path / epoch_file(1)).exists()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"checkpoints": [' + "[" * 5000, "\xff", ""])
def test_an_index_that_is_not_json_is_rebuilt(text: str, tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / INDEX).write_text(text, encoding="latin-1")
    found = CheckpointStore(tmp_path).newest()
    assert found is not None
    assert found[0] == epoch_file(1)


@pytest.mark.parametrize("text", ["../../etc/passwd", "x" * 100_000, "\x00", "/", "\x1b[31m", ""])
def test_a_pointer_to_nowhere_is_skipped(text: str, tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / LAST).write_text(text)
    found = CheckpointStore(tmp_path).newest()
    assert found is not None
    assert found[0] == epoch_file(1)
