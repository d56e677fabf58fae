"""Kill, starve and damage a training, and show that nothing durable is lost: ``make faults``.

A training with dropout, random augmentation in two workers, averaged weights, a schedule, early
stopping and a save after every iteration is run once undisturbed. Then it is killed with SIGKILL at
random moments (while it starts, loads, trains, validates, writes) and resumed, again and again. Its
final checkpoint and its metrics must be those of the undisturbed run, to the bit. More trials
follow: every signal, every way to end, a kill between save and validation, damaged files, links in
place of files, directories that disappear or cannot be written, full disks, a store that hangs.

With ``--ranks 4`` only one trial runs: trainings on so many ranks, with replicas and with shards.
A random rank, all ranks or the launcher is killed at random moments, also in a save and in a
validation.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # A process that has threads cannot be forked safely.

from fault_trials.bench import Bench
from fault_trials.endings import (
    end_by_signals,
    end_in_every_way,
    kill_at_random,
    kill_before_validation,
)
from fault_trials.files import (
    damage_all_files,
    damage_newest_file,
    forbid_writing,
    plant_links,
    remove_directory,
)
from fault_trials.process import TrialFailed
from fault_trials.ranks import run_rank_trials
from fault_trials.stores import (
    fail_while_disk_is_full,
    fill_disk_for_a_while,
    fill_disk_for_good,
    hang_store,
    use_small_disk,
)
from fault_trials.training import FULL, SMALL, Size

TRIALS: dict[str, Callable[[Bench], str]] = {
    "SIGKILL at random moments": kill_at_random,
    "signals": end_by_signals,
    "every way to end": end_in_every_way,
    "killed between save and validation": kill_before_validation,
    "damaged newest file": damage_newest_file,
    "all files damaged": damage_all_files,
    "links in place of files": plant_links,
    "directory removed": remove_directory,
    "directory read-only at the end": forbid_writing,
    "disk too small for one more": use_small_disk,
    "store that hangs": hang_store,
    "disk full for a while": fill_disk_for_a_while,
    "disk full for good": fill_disk_for_good,
    "hooks that fail on a full disk": fail_while_disk_is_full,
}


def run_trials(root: Path, size: Size, seed: int = 0) -> None:
    """Run all trials; the first one that fails raises a `TrialFailed`."""
    bench = Bench(root, size, seed)
    print(f"undisturbed: {bench.iterations} iterations in {bench.seconds:.1f} s ({bench.ending})")
    for name, trial in TRIALS.items():
        began = time.monotonic()
        result = trial(bench)
        print(f"{name}: {result} [{time.monotonic() - began:.1f} s]", flush=True)


def main() -> None:
    """Read the command line and run the trials."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a few kills, as in the tests")
    parser.add_argument("--kills", type=int, help="number of random kills")
    parser.add_argument("--ranks", type=int, help="kill a training on this many ranks instead")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments")
    options = parser.parse_args()
    size = SMALL if options.small else FULL
    if options.kills:
        size = Size(size.epochs, options.kills, size.patience)
    with tempfile.TemporaryDirectory(prefix="hookloop-faults-") as folder:
        try:
            if options.ranks:
                run_rank_trials(Path(folder), options.ranks, size.kills, options.seed)
            else:
                run_trials(Path(folder), size, options.seed)
        except TrialFailed as failure:
            raise SystemExit(f"FAILED: {failure}") from failure


if __name__ == "__main__":
    main()
