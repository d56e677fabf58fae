"""Change the files of a run that has ended, as somebody would who wants to hide something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.errors import HookloopError
from hookloop.runs.checkpoint_names import INDEX
from hookloop.runs.checksum import checksum_of_records, open_archive
from hookloop.runs.files import write_text
from hookloop.runs.layout import RunDir
from hookloop.runs.metrics_file import STAMPS
from hookloop.runs.policy import is_of_machine
from hookloop.runs.records import to_json


def edit_run(run_dir: str | Path, what: str) -> str:
    """Make a small change to a run on purpose, and return what it was.

    Args:
        run_dir: The run.
        what: ``"metrics"`` for a number in the middle of the metrics, ``"weights"`` for a weight in
            the middle one of its checkpoints, with the checksum that belongs to it.
    """
    run = RunDir(Path(run_dir))
    return _edit_metrics(run) if what == "metrics" else _edit_weights(run)


def _edit_metrics(run: RunDir) -> str:
    lines = run.metrics_file.read_text(encoding="utf-8").splitlines()
    places = [
        (number, name)
        for number, line in enumerate(lines)
        for name, value in json.loads(line).items()
        if isinstance(value, float) and name not in STAMPS
        if not is_of_machine(name) and name.partition("/")[0] == "train"
    ]
    if not places:
        raise HookloopError(f"'{run.path}' has no metric to edit.")
    number, name = places[len(places) // 2]
    record = json.loads(lines[number])
    record[name] *= 0.99
    lines[number] = to_json(record)
    write_text(run.metrics_file, "".join(f"{line}\n" for line in lines))
    return f"{name} of iteration {record['iter']} in {run.metrics_file.name} is 1 % smaller"


def _edit_weights(run: RunDir) -> str:
    store = CheckpointStore(run.path)
    entries = store.index.entries.values()
    saved = sorted((one for one in entries if one.is_resumable), key=lambda one: one.iter)
    files = [one for one in saved if (run.path / one.name).is_file()]
    if not files:
        raise HookloopError(f"'{run.path}' has no checkpoint in one file to edit.")
    entry = files[(len(files) - 1) // 2]
    path = run.path / entry.name
    checkpoint = torch.load(path, weights_only=True)
    name, weight = next(
        (name, one)
        for name, one in cast("dict[str, Tensor]", checkpoint["model"]).items()
        if one.is_floating_point() and one.numel()
    )
    weight.view(-1)[:1] *= 1.01
    torch.save(checkpoint, path)
    index = json.loads((run.path / INDEX).read_text(encoding="utf-8"))
    with path.open("rb") as file:
        archive = open_archive(file)
        assert archive is not None
        crc32 = checksum_of_records(archive)
    for one in _entries(index):
        if one.get("name") == entry.name:
            one |= {"size": path.stat().st_size, "crc32": crc32}
    write_text(run.path / INDEX, to_json(index, indent=2))
    return f"a number of {name} in {entry.name} is 1 % larger"


def _entries(value: object) -> list[dict[str, object]]:
    """Return the entries of an index, wherever they are in it."""
    if isinstance(value, dict):
        inner = [one for part in value.values() for one in _entries(part)]
        return [value, *inner] if "crc32" in value else inner
    return [one for part in value for one in _entries(part)] if isinstance(value, list) else []
