"""The keys that a config may have.

A key describes an object to build (with a ``type``), is a setting (a plain value that the Trainer
gets as it is), or concerns the config itself.
"""

from __future__ import annotations

from typing import Literal

from hookloop.every import Every

BUILT = (
    "model",
    "train_data",
    "val_data",
    "test_data",
    "predict_data",
    "loss",
    "step",
    "metrics",
    "count_tokens",
    "prepare",
    "optimizer",
    "schedule",
    "hooks",
    "default_hooks",
    "points",
    "load_from",
)
"""Keys whose values describe objects, in the order in which they are built."""

SETTINGS: dict[str, object] = {
    "mix": str | dict[str, object] | None,
    "val_mix": Literal["zip"] | None,
    "max_epochs": int | None,
    "max_iters": int | None,
    "epoch_iters": int | None,
    "limit": dict[str, int] | None,
    "overfit": int | None,
    "val_every": Every | int | str | dict[str, object],
    "val_begin": int,
    "val_at_start": bool,
    "accumulate": int | Literal["auto"] | dict[str, int],
    "clip_norm": float | None,
    "precision": Literal["fp32", "bf16", "fp16"],
    "device": str,
    "compile": bool | dict[str, object],
    "deterministic": bool | Literal["warn"],
    "matmul": Literal["highest", "high", "medium"] | None,
    "run_dir": str | None,
    "seed": int | None,
    "resume": bool | str | None,
    "seed_samples": bool | Literal["workers"],
    "parallel": str | dict[str, object] | None,
}
"""Arguments of the Trainer that are plain values, with their types."""

LEAST = {
    "max_epochs": 1, "max_iters": 1, "epoch_iters": 1, "overfit": 1, "accumulate": 1,
    "val_begin": 0,
}  # fmt: skip
"""The smallest value that each of these settings may have."""

ABOUT: dict[str, object] = {
    "name": str | None,
    "imports": str | list[str],
    "custom_imports": dict[str, object],
    "import_path": str | list[str],
    "custom_hooks": object,
    "vars": dict[str, object] | None,
    "tags": str | list[str],
    "notes": str,
}
"""Keys that the Trainer does not see."""

SHOWN = ("name", "run_dir", "resume", "imports", "custom_imports", "import_path")
"""Keys whose values become names of files or modules, so a secret cannot be used there."""

KEYS = (*BUILT, *SETTINGS, *ABOUT)
