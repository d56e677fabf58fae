"""The constants that hook files import from ``emloop.constants``."""

from __future__ import annotations

EL_DEFAULT_TRAIN_STREAM = "train"
EL_PREDICT_STREAM = "predict"
EL_TRACE_FILE = "trace.yaml"
EL_CONFIG_FILE = "config.yaml"
EL_LOG_FILE = "train.log"
EL_HOOKS_MODULE = "emloop.hooks"
EL_DEFAULT_LOG_DIR = "./log"
EL_NA_STR = "N/A"
EL_LOG_FORMAT = "%(asctime)s.%(msecs)03d: %(levelname)-8s@%(module)-12s: %(message)s"
EL_LOG_DATE_FORMAT = "%Y-%m-%d %H:%M:%S"
EL_FULL_DATE_FORMAT = "%Y-%m-%d %H:%M:%S.%f"
EL_BUFFER_SLEEP = 0.02


def __getattr__(name: str) -> object:
    """Return a constant under its older name, with the prefix of cxflow."""
    current = f"EL_{name.removeprefix('CXF_')}"
    if not name.startswith("CXF_") or current not in globals():
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return globals()[current]
