import json
import struct

import pytest
from wandb.proto import wandb_internal_pb2

from hookloop.writers.wandb import BLOCK, HEADER, read_rows


def content(row):
    record = wandb_internal_pb2.Record()
    for key, value in row.items():
        item = record.history.item.add()
        item.key, item.value_json = key, json.dumps(value)
    return record.SerializeToString()


def log(*contents):
    """Write a LevelDB log with wandb's header, with pieces as long as the block allows."""
    data = b":W&B" + struct.pack("<HB", 0, 0)
    for whole in contents:
        rest, is_first = whole, True
        while True:
            room = BLOCK - len(data) % BLOCK
            if room < HEADER:
                data += b"\0" * room
                continue
            piece, rest = rest[: room - HEADER], rest[room - HEADER :]
            kind = (1 if is_first else 4) if not rest else (2 if is_first else 3)
            data += struct.pack("<IHB", 0, len(piece), kind) + piece
            is_first = False
            if not rest:
                break
    return data


def put(directory, data, run="offline-run-1-abc", run_id="abc"):
    path = directory / "wandb" / run / f"run-{run_id}.wandb"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)


@pytest.mark.parametrize("size", [1, BLOCK - 40, BLOCK, 3 * BLOCK])
def test_records_that_cross_blocks_are_joined(tmp_path, size):
    rows = [{"iter": 1}, {"text": "x" * size}, {"iter": 2, "loss": 0.5}]
    put(tmp_path, log(*map(content, rows)))
    assert list(read_rows(tmp_path, "abc")) == rows


def test_every_padding_at_the_end_of_a_block_is_skipped(tmp_path):
    # Three lengths within the record take two more bytes each when the text is long.
    frame = 2 * HEADER + len(content({"text": ""})) + 6
    for left in range(HEADER + 2):
        size = BLOCK - frame - left
        rows = [{"text": "x" * size}, {"iter": 2}]
        assert len(log(content(rows[0]))) == BLOCK - left
        put(tmp_path, log(*map(content, rows)), f"offline-run-{left}-run{left}", f"run{left}")
        assert list(read_rows(tmp_path, f"run{left}")) == rows


def test_other_kinds_of_records_are_ignored(tmp_path):
    summary = wandb_internal_pb2.Record()
    summary.summary.update.add().key = "loss"
    put(tmp_path, log(summary.SerializeToString(), content({"iter": 1})))
    assert list(read_rows(tmp_path, "abc")) == [{"iter": 1}]


def test_a_nested_key_is_joined(tmp_path):
    record = wandb_internal_pb2.Record()
    item = record.history.item.add()
    item.nested_key.extend(["val", "loss"])
    item.value_json = "0.5"
    put(tmp_path, log(record.SerializeToString()))
    assert list(read_rows(tmp_path, "abc")) == [{"val/loss": 0.5}]


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_a_log_that_was_cut_off_ends_with_its_last_complete_record(tmp_path, cut):
    data = log(content({"iter": 1}), content({"iter": 2}))
    put(tmp_path, data[:-cut])
    assert list(read_rows(tmp_path, "abc")) == [{"iter": 1}]


def test_zeros_after_the_last_record_end_the_log(tmp_path):
    put(tmp_path, log(content({"iter": 1})) + b"\0" * 100)
    assert list(read_rows(tmp_path, "abc")) == [{"iter": 1}]


def test_all_parts_of_a_run_are_read_in_order_and_no_other_run(tmp_path):
    put(tmp_path, log(content({"iter": 2})), "offline-run-20260102_000000-abc")
    put(tmp_path, log(content({"iter": 1})), "offline-run-20260101_000000-abc")
    put(tmp_path, log(content({"iter": 3})), "offline-run-20260102_000000-abc-1")
    put(tmp_path, log(content({"iter": 9})), "offline-run-20260101_000000-xyz", "xyz")
    assert [row["iter"] for row in read_rows(tmp_path, "abc")] == [1, 2, 3]
