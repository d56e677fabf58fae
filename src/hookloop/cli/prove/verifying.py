"""What ``verify-resume`` and ``verify-hooks`` begin with: the task that their processes get."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.cli.shared.arguments import chosen_aliases
from hookloop.cli.shared.report import print_text

if TYPE_CHECKING:
    from hookloop.config.tree import Config
    from hookloop.short_runs.task import TrainingTask


def prepared_task(
    work: str, folder: str, config: Path, overrides: tuple[str, ...], iters: int, ranks: int = 1
) -> tuple[Config, TrainingTask]:
    """Check a config, which is rejected without waiting for torch; return it, and the task."""
    from hookloop.config.load import load

    loaded = load(config, overrides)
    if loaded.tree.get("seed") is None:
        print_text("The config has no seed; 0 is used, so that two runs can be compared.")
    from hookloop.short_runs.task import TrainingTask

    place = str(Path(folder) / "run")
    task = TrainingTask(work, str(config), overrides, chosen_aliases(), place, iters, ranks)
    return loaded, task


def logical_ranks(config: Config) -> int:
    """Return how many logical ranks a config has, 0 for none."""
    parallel = config.tree.get("parallel")
    logical = parallel.get("logical") if isinstance(parallel, Mapping) else None
    return logical if isinstance(logical, int) else 0
