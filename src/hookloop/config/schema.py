"""The keys that a config may have.

A key is built (an object described by its ``type``), a setting (a plain value handed to the
Trainer as it is), or about the config itself.
"""

from __future__ import annotations

from typing import Literal

from hookloop.every import Every

BUILT = (
    "model",
    "train_data",
    "val_data",
    "test_data",
    "loss",
    "step",
    "metrics",
    "optimizer",
    "schedule",
    "hooks",
    "default_hooks",
    "points",
    "load_from",
)
"""Keys whose values describe objects, in the order in which these are built."""

SETTINGS: dict[str, object] = {
    "max_epochs": int | None,
    "max_iters": int | None,
    "epoch_iters": int | None,
    "val_every": Every | int | str,
    "val_begin": int,
    "val_at_start": bool,
    "accumulate": int,
    "clip_norm": float | None,
    "precision": Literal["fp32", "bf16", "fp16"],
    "device": str,
    "compile": bool | dict[str, object],
    "run_dir": str | None,
    "seed": int | None,
    "resume": bool | str | None,
    "seed_samples": bool,
}
"""Arguments of the Trainer that are plain values, with their types."""

LEAST = {"max_epochs": 1, "max_iters": 1, "epoch_iters": 1, "accumulate": 1, "val_begin": 0}
"""The smallest values that make sense."""

ABOUT: dict[str, object] = {
    "name": str | None,
    "imports": str | list[str],
    "custom_imports": dict[str, object],
    "import_path": str | list[str],
    "custom_hooks": object,
    "vars": dict[str, object] | None,
}
"""Keys that the Trainer does not see."""

SHOWN = ("name", "run_dir", "resume", "imports", "custom_imports", "import_path")
"""Keys whose values become names of files or modules, so that none can be a secret."""

NOT_COMPARED = ("import_path", "name", "run_dir", "resume")
"""Keys in which two runs of the same config may differ."""

KEYS = (*BUILT, *SETTINGS, *ABOUT)
