"""``emloop.utils.config``: read a config of emloop, with changes from the command line."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from hookloop_dialects.emloop.utils.yaml import load_yaml, parse_yaml, reload

_log = logging.getLogger()  # emloop logs with the root logger.


def parse_arg(arg: str) -> tuple[str, Any]:
    """Read ``key=value``, the value as YAML."""
    key, sign, value = arg.partition("=")
    assert sign, f"'{arg}' is not of the form name=value"
    return key, parse_yaml(value)


def load_config(
    config_file: str, additional_args: Iterable[str] = (), override_stream: str | None = None
) -> dict[str, Any]:
    """Read a config.

    Args:
        config_file: The file.
        additional_args: Changes, each as ``section.key=value``.
        override_stream: A stream whose section in ``eval`` replaces the hooks and changes the
            data set, the model and the main loop.
    """
    config: dict[str, Any] = load_yaml(config_file)
    if override_stream is not None and override_stream in config.get("eval", {}):
        section = config["eval"][override_stream]
        for name in ("dataset", "model", "main_loop"):
            config.setdefault(name, {}).update(deepcopy(section.get(name, {})))
        if "hooks" not in section:
            _log.warning("eval.%s has no hooks, so there are none.", override_stream)
        config["hooks"] = section.get("hooks", [])
    for arg in additional_args:
        path, value = parse_arg(arg)
        *parents, key = path.split(".")
        target = config
        for parent in parents:
            target = target[parent]
        target[key] = value
    return dict(reload(config))
