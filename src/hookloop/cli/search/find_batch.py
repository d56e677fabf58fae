"""``hookloop find-batch``: find the largest batch size that fits into memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import FAILED, print_error, print_text, reporting
from hookloop.cli.shared.table import show_table
from hookloop.cli.train.check import build_without_run
from hookloop.every import count_of
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.short_runs.find_batch import FoundBatch, Trial

COLUMNS = ("batch size", "fits", "s/iter", "samples/s", "peak memory")


@click.command("find-batch", short_help="Find the largest batch size that fits into memory.")
@config_and_overrides
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="N",
    help="The largest size to try; 4096 by default, or the size of the data set.",
)
@reporting
def command(config: Path, overrides: tuple[str, ...], most: int | None) -> int:
    """Find the largest batch size of CONFIG's train_data that fits into memory.

    Sizes are doubled until one does not fit, and then the gap is halved. Each is tried with a few
    iterations on the first samples of the data set, without hooks. Nothing is written to disk.
    """
    from hookloop.config.load import load
    from hookloop.short_runs.find_batch import find_batch

    loaded = load(config, overrides)
    with scratch_directory("find-batch") as scratch:
        trainer = build_without_run(loaded, scratch)
        found = find_batch(trainer, most=most)
    key = _find_key(loaded.tree.get("train_data"), "train_data")
    is_cpu = trainer.run.device.type == "cpu"
    set_result(_plain(found, key))
    show_table(COLUMNS, [_cells(trial, is_cpu=is_cpu) for trial in found.trials], wide=())
    if found.largest:
        print_text(_advice(found, key))
    if not found.largest:
        print_error("not even a batch of one sample fits into memory.")
        return FAILED
    return 0


def _advice(found: FoundBatch, key: str | None) -> str:
    """Return what was found, and what to write into the config."""
    size = found.largest
    write = f"{key}={size}" if key else f"batch_size={size} in what train_data builds"
    if found.is_limited:
        head = f"The largest batch that fits has {count_of(size, 'sample')}: write {write}"
    else:
        head = f"All sizes up to {size} fit, where the search ends: write {write}"
    fastest = next(trial for trial in found.trials if trial.size == found.fastest)
    speed = _number(fastest.samples_per_second or 0.0)
    return f"{head}\nA batch of {fastest.size} is the fastest: {speed} samples per second."


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cells(trial: Trial, *, is_cpu: bool) -> tuple[str, ...]:
    if not trial.fits:
        return str(trial.size), "no", "", "", ""
    memory = "unknown" if trial.memory is None else f"{trial.memory:,.0f} MiB"
    if is_cpu and trial.memory is not None:
        memory = f"+{memory}"
    return (
        str(trial.size),
        "yes",
        f"{trial.seconds:.4g}",
        _number(trial.samples_per_second or 0.0),
        memory,
    )


def _plain(found: FoundBatch, key: str | None) -> dict[str, object]:
    return {
        "largest": found.largest,
        "fastest": found.fastest,
        "most": found.most,
        "limited_by_memory": found.is_limited,
        "override": f"{key}={found.largest}" if key and found.largest else None,
        "trials": [
            {
                "size": trial.size,
                "fits": trial.fits,
                "seconds_per_iter": trial.seconds,
                "samples_per_second": trial.samples_per_second,
                "peak_memory_mib": trial.memory,
            }
            for trial in found.trials
        ],
    }


def _find_key(part: object, path: str) -> str | None:
    """Return the key of the batch size in a part of the config, the outermost first."""
    if not isinstance(part, Mapping):
        return None
    if "batch_size" in part:
        return f"{path}.batch_size"
    inner = (_find_key(value, f"{path}.{name}") for name, value in part.items())
    return next(filter(None, inner), None)
