"""Run directories written by hand, for the tests of the board: no torch, no training."""

import json
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from hookloop.runs.lock import RunLock
from hookloop_board.access import Access
from hookloop_board.app import make_app
from hookloop_board.collection import Collection

SUMMARY = {
    "status": "completed",
    "reason": "",
    "iter": 100,
    "epoch": 5,
    "total_iters": 100,
    "total_epochs": 5,
    "batch_size": 8,
    "ranks": 1,
    "started": "2026-01-31T09:00:00+00:00",
    "ended": "2026-01-31T09:01:40+00:00",
    "written": "2026-01-31T09:01:40+00:00",
    "seconds": 100.0,
    "metrics": {"train/loss": 0.1, "val/accuracy": 0.9},
    "best": {"val/accuracy": {"value": 0.95, "iter": 80, "epoch": 4}},
    "changes": [],
    "disabled": [],
}
BEGAN = 1769850000.0
"""The time of the start, in seconds since 1970."""


def record(iteration, per_epoch=20, **values):
    """A line of metrics."""
    return {
        "time": BEGAN + iteration,
        "phase": "train",
        "span": "iter",
        "iter": iteration,
        "epoch": iteration // per_epoch,
        **values,
    }


def write_run(path: Path, records=None, summary=None, config="optimizer:\n  lr: 0.1\n") -> Path:
    """A run directory as a training leaves it."""
    path.mkdir(parents=True)
    if records is None:
        records = [record(i, **{"train/loss": 1 / i}) for i in range(10, 101, 10)]
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    (path / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (path / "summary.json").write_text(json.dumps({**SUMMARY, **(summary or {})}))
    if config:
        (path / "config.yaml").write_text(config)
    return path


@contextmanager
def locked(path: Path):
    """A run directory while a process trains in it, which is this one."""
    lock = RunLock(path)
    lock.take()
    try:
        yield
    finally:
        lock.give_back()


def entry_of(path: Path):
    """The only run in a directory, with its collection."""
    collection = Collection([path])
    (entry,) = collection.entries().values()
    return collection, entry


def client_of(*roots: Path, token=None, page=None, host="127.0.0.1", name="localhost"):
    """A client of the application, without a network."""
    app = make_app(Collection(list(roots)), Access(host, 6060, token), page)
    return TestClient(app, base_url=f"http://{name}:6060")
