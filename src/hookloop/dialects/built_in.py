"""The dialects that come with hookloop, as the entry points in pyproject.toml name them.

Nothing here imports a dialect's package before a hook of it turns up.
"""

from __future__ import annotations

from collections.abc import Mapping

from hookloop.core.hook import Hook
from hookloop.trainer.adapters import Dialect

_HOME = "hookloop.dialects"


def _bases(home: str, *foreign: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Recognise the foreign base classes, and ours that stand in for them."""
    return (*foreign, *((home, name) for name in dict.fromkeys(name for _, name in foreign)))


def _adapt_mmengine(hook: object) -> list[Hook]:
    from hookloop.dialects.mmengine.adapter import adapt

    return adapt(hook)


def _mmengine_hooks() -> Mapping[str, str]:
    from hookloop.dialects.mmengine.catalogue import CATALOGUE

    return CATALOGUE


MMENGINE = Dialect(
    name="mmengine",
    bases=_bases(f"{_HOME}.mmengine", ("mmengine", "Hook")),
    adapt=_adapt_mmengine,
    catalogue=_mmengine_hooks,
    packages={"mmengine": f"{_HOME}.mmengine"},
    registries=(
        ("mmengine.registry", "HOOKS", "module_dict"),
        (f"{_HOME}.mmengine.registry", "HOOKS", "module_dict"),
    ),
    default_hooks={
        "logger": "console",
        "param_scheduler": "schedule",
        "sampler_seed": "sampler",
        "timer": "timing",
    },
)


def _adapt_emloop(hook: object) -> list[Hook]:
    from hookloop.dialects.emloop.adapter import adapt

    return adapt(hook)


def _emloop_hooks() -> Mapping[str, str]:
    from hookloop.dialects.emloop.catalogue import CATALOGUE

    return CATALOGUE


EMLOOP = Dialect(
    name="emloop",
    bases=_bases(
        f"{_HOME}.emloop",
        ("emloop", "AbstractHook"),
        (".hooks", "AbstractHook"),  # The module that emloop gives its base class.
    ),
    adapt=_adapt_emloop,
    catalogue=_emloop_hooks,
    packages={
        "emloop": f"{_HOME}.emloop",
        "emloop_tensorflow": f"{_HOME}.emloop.tensorflow_hooks",
    },
    gives_all=True,
)


def _adapt_vissl(hook: object) -> list[Hook]:
    from hookloop.dialects.vissl.adapter import adapt

    return adapt(hook)


def _vissl_hooks() -> Mapping[str, str]:
    from hookloop.dialects.vissl.catalogue import CATALOGUE

    return CATALOGUE


VISSL = Dialect(
    name="vissl",
    bases=_bases(f"{_HOME}.vissl", ("classy_vision", "ClassyHook")),
    adapt=_adapt_vissl,
    catalogue=_vissl_hooks,
    packages={"vissl": f"{_HOME}.vissl", "classy_vision": f"{_HOME}.vissl.classy_vision"},
)


def _adapt_imix(hook: object) -> list[Hook]:
    from hookloop.dialects.imix.adapter import adapt

    return adapt(hook)


def _imix_hooks() -> Mapping[str, str]:
    from hookloop.dialects.imix.catalogue import CATALOGUE

    return CATALOGUE


IMIX = Dialect(
    name="imix",
    bases=_bases(f"{_HOME}.imix", ("imix", "HookBase")),
    adapt=_adapt_imix,
    catalogue=_imix_hooks,
    packages={"imix": f"{_HOME}.imix"},
    registries=((f"{_HOME}.imix.engine.hooks.builder", "HOOKS", "_registered"),),
    settings=("level",),
)


def _adapt_pointrix(hook: object) -> list[Hook]:
    from hookloop.dialects.pointrix.adapter import adapt

    return adapt(hook)


def _pointrix_hooks() -> Mapping[str, str]:
    from hookloop.dialects.pointrix.catalogue import CATALOGUE

    return CATALOGUE


POINTRIX = Dialect(
    name="pointrix",
    bases=_bases(f"{_HOME}.pointrix", ("pointrix", "Hook")),
    adapt=_adapt_pointrix,
    catalogue=_pointrix_hooks,
    packages={"pointrix": f"{_HOME}.pointrix"},
    registries=((f"{_HOME}.pointrix.hook.base_hook", "HOOK_REGISTRY", "_registered"),),
)
