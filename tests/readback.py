"""Reads back what writers wrote, with the backend's own reader if it has one."""

from __future__ import annotations

import csv
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

Points = list[tuple[int, float]]


def jsonl_points(path: Path, name: str) -> Points:
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(record["iter"], float(record[name])) for record in records if name in record]


def csv_rows(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def csv_points(path: Path, name: str) -> Points:
    return [(int(row["iter"]), float(row[name])) for row in csv_rows(path) if row.get(name)]


def events(directory: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(
        str(directory), size_guidance={"histograms": 0, "images": 0, "tensors": 0}
    )
    return accumulator.Reload()


def tensorboard_points(directory: Path, name: str) -> Points:
    return [(event.step, event.value) for event in events(directory).Scalars(name)]


def mlflow_client(directory: Path):
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"file:{directory.absolute()}")


def mlflow_points(directory: Path, run_id: str, name: str) -> Points:
    history = mlflow_client(directory).get_metric_history(run_id, name)
    return [(metric.step, metric.value) for metric in history]


def trackio_logs(project: str, run_name: str) -> list[dict[str, object]]:
    from trackio.sqlite_storage import SQLiteStorage

    return SQLiteStorage.get_logs(project, run_name)


def trackio_points(project: str, run_name: str, name: str) -> Points:
    logs = trackio_logs(project, run_name)
    return [(log["step"], log[name]) for log in logs if name in log]  # type: ignore[misc]


def wandb_history(directory: Path) -> list[dict[str, object]]:
    """Return the rows of the offline runs in a directory, oldest run first."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    wandb.teardown()  # Its files are complete only when its service has ended.
    rows = []
    for path in sorted(directory.glob("wandb/offline-run-*/run-*.wandb")):
        for content in _log_records(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(content)
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append(
                    {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in items}
                )
    return rows


def wandb_points(directory: Path, name: str) -> Points:
    rows = wandb_history(directory)
    return [(row["iter"], float(row[name])) for row in rows if name in row]  # type: ignore[misc, arg-type]


def comet_points(directory: Path, name: str) -> Points:
    """Read the archives of an offline experiment, in the order in which they were written."""
    points: Points = []
    for path in sorted(directory.glob("*.zip"), key=lambda path: path.stat().st_mtime_ns):
        with zipfile.ZipFile(path) as archive:
            lines = archive.read("messages.json").decode().splitlines()
        metrics = [json.loads(line)["payload"].get("metric") for line in lines]
        points += [
            (int(one["step"]), float(one["metricValue"]))
            for one in metrics
            if one and one["metricName"] == name
        ]
    return points


def clearml_points(directory: Path, name: str) -> Points:
    """Read the file of an offline task."""
    (path,) = directory.glob("offline/*/metrics.jsonl")
    events = [event for line in path.read_text().splitlines() for event in json.loads(line)]
    title, _, series = name.partition("/")
    return [
        (int(event["iter"]), float(event["value"]))
        for event in events
        if event.get("metric") == title and event.get("variant") == (series or title)
    ]


def _log_records(data: bytes, block: int = 32768) -> Iterator[bytes]:
    """Yield the records of a LevelDB log, after a header of 7 bytes.

    Written again here, so that a mistake in the reader under test cannot hide itself.
    """
    at, part = 7, b""
    while at + 7 <= len(data):
        left = block - at % block
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        part += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # Whole, or the last of several pieces.
            yield part
            part = b""


def png(path: Path) -> np.ndarray:
    """Return the pixels of a PNG file, decoded by a library that did not write it."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image)
