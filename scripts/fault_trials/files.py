"""Trials with the files of a run: damaged, linked, deleted, or not writable."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fault_trials.bench import Bench
from fault_trials.process import REJECTED, TrialFailed
from hookloop import Hook
from hookloop.engine.run import Run

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "bit-flipped": lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
    "empty": lambda data: b"",
    "foreign": lambda data: b"GIF89a" * 1000,
}


def damage_newest_file(bench: Bench) -> str:
    """The newest file is damaged: the one before is taken, and a warning names both."""
    for kind, damage in DAMAGES.items():
        run_dir = bench.root / kind
        bench.kill_at(run_dir, 15)
        newest = run_dir / (run_dir / "last_checkpoint").read_text().strip()
        newest.write_bytes(damage(newest.read_bytes()))
        process = bench.run(run_dir)
        log = process.log.read_text()
        if newest.name not in log or "Resuming from 'iter_" not in log:
            raise TrialFailed(f"{kind}: no warning names the skipped file and its replacement")
        bench.check_end(run_dir)
    return f"{', '.join(DAMAGES)}: skipped for the file before, with a warning; ended bit-equal"


def damage_all_files(bench: Bench) -> str:
    """Every file is damaged: the resume is rejected, and nothing is trained from zero."""
    run_dir = bench.root / "all_damaged"
    bench.kill_at(run_dir, 15)
    for path in run_dir.glob("*.pth"):
        path.write_bytes(DAMAGES["truncated"](path.read_bytes()))
    before = sorted(path.name for path in run_dir.iterdir() if path.name[0] != ".")
    process = bench.run(run_dir, REJECTED)
    if "No checkpoint in" not in process.log.read_text():
        raise TrialFailed(f"all_damaged: it was rejected for another reason:\n{process.tail()}")
    if [name for name in before if not (run_dir / name).exists()]:
        raise TrialFailed("all_damaged: files disappeared")
    return "rejected with the reason for each file; nothing was trained or deleted"


def plant_links(bench: Bench) -> str:
    """Files of the run are links: those that would be appended to are rejected, none followed."""
    run_dir, victim = bench.root / "links", bench.root / "victim"
    bench.kill_at(run_dir, 15)
    victim.write_text("precious")
    # These are appended to, so a link cannot simply be replaced by a new file.
    for name in (".lock", "metrics.jsonl", "run.log"):
        path, kept = run_dir / name, bench.root / "kept"
        if path.exists():
            shutil.move(path, kept)
        path.symlink_to(victim)
        process = bench.run(run_dir, REJECTED)
        if "is a symbolic link" not in process.log.read_text():
            raise TrialFailed(f"links: '{name}' was rejected for another reason:\n{process.tail()}")
        path.unlink()
        if kept.exists():
            shutil.move(kept, path)
    # These are written whole, and the new file replaces the link.
    for name in ("summary.json", "config.yaml", "checkpoints.json"):
        (run_dir / name).unlink(missing_ok=True)
        (run_dir / name).symlink_to(victim)
    bench.run(run_dir)
    if victim.read_text() != "precious":
        raise TrialFailed("links: the target of a link was written to")
    bench.check_end(run_dir)
    return "none was followed; ended bit-equal once the links were gone"


def remove_directory(bench: Bench) -> str:
    """The directory disappears during training: training continues, and saves again."""
    run_dir = bench.root / "removed"

    class Remove(Hook):
        def after_train_iter(self, run: Run) -> None:
            if run.progress.iter == 15:
                shutil.rmtree(run.dir, ignore_errors=True)

    process = bench.run(run_dir, hooks=[Remove()])
    bench.check_end(run_dir)
    if "were deleted while it is trained in" not in process.log.read_text():
        raise TrialFailed(f"removed: it was not reported:\n{process.tail()}")
    return "reported, made again with all metrics, and saved to again; ended bit-equal"


def forbid_writing(bench: Bench) -> str:
    """The directory cannot be written to at the end: train() returns, with the problem."""
    run_dir = bench.root / "read_only"

    class Forbid(Hook):
        def after_train_epoch(self, run: Run) -> None:
            # A file in place of the directory: permissions would not stop root.
            if run.progress.epoch == 2:
                replace_by_file(run.dir)

    process = bench.run(run_dir, 1, hooks=[Forbid()], end=20)
    log = process.log.read_text()
    if "could not be saved" not in log or "Traceback" in log:
        raise TrialFailed(f"read_only: it was not reported, or with a traceback:\n{process.tail()}")
    return "train() returned with the problem and exit code 1"


def replace_by_file(directory: Path) -> None:
    """Put a file in place of a directory, also while a thread of the run makes it again."""
    while not directory.is_file():
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(IsADirectoryError):
            directory.write_text("not a directory")
