"""The dialect of MMEngine, to which the entry point in pyproject.toml refers.

The import statements of the rest stay inside functions: only a run with such a hook needs it.
"""

from __future__ import annotations

from collections.abc import Mapping

from hookloop import Hook
from hookloop.dialects import Dialect, Graft

_HOME = "hookloop_mmengine"


def _adapt(hook: object) -> list[Hook]:
    from hookloop_mmengine.adapter import adapt

    return adapt(hook)


def _hooks() -> Mapping[str, str]:
    from hookloop_mmengine.catalogue import CATALOGUE

    return CATALOGUE


def _graft() -> Graft:
    from hookloop_mmengine.graft.patches import make_graft

    return make_graft()


MMENGINE = Dialect(
    name="mmengine",
    bases=(("mmengine", "Hook"), (_HOME, "Hook")),
    adapt=_adapt,
    catalogue=_hooks,
    packages={"mmengine": _HOME},
    # Both, since a file may import the real package or ours through an alias.
    registries=(
        ("mmengine.registry", "HOOKS", "module_dict"),
        (f"{_HOME}.registry", "HOOKS", "module_dict"),
    ),
    default_hooks={
        "logger": "console",
        "param_scheduler": "schedule",
        "sampler_seed": "sampler",
        "timer": "timing",
    },
    graft=_graft,
    sections=("default_hooks", "custom_hooks"),
    keys={"custom_hooks": "hooks", "custom_imports": "imports"},
    former=dict.fromkeys(
        ("mmcv", "mmcv.runner"),
        "If the file imports 'mmcv.runner', it was written for MMCV 1, whose hooks and runner are "
        "in MMEngine now: import Hook from mmengine.hooks, HOOKS from mmengine.registry and Runner "
        "from mmengine.runner instead, and give --alias mmengine if mmengine is not installed.",
    ),
)
