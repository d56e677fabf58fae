"""The dialects of this distribution; the entry points in pyproject.toml refer to these names.

A dialect's package is imported only when a run contains one of its hooks. The import statements
stay inside functions, rather than strings, so that the layer check sees them.
"""

from __future__ import annotations

from collections.abc import Mapping

from hookloop import Hook
from hookloop.dialects import Dialect

_HOME = "hookloop_dialects"


def _bases(home: str, *foreign: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the foreign base classes and ours that stand in for them."""
    return (*foreign, *((home, name) for name in dict.fromkeys(name for _, name in foreign)))


def _adapt_emloop(hook: object) -> list[Hook]:
    from hookloop_dialects.emloop.adapter import adapt

    return adapt(hook)


def _emloop_hooks() -> Mapping[str, str]:
    from hookloop_dialects.emloop.catalogue import CATALOGUE

    return CATALOGUE


EMLOOP = Dialect(
    name="emloop",
    bases=_bases(
        f"{_HOME}.emloop",
        ("emloop", "AbstractHook"),
        (".hooks", "AbstractHook"),  # emloop sets __module__ of its base class to this.
        ("cxflow", "AbstractHook"),  # emloop's older name.
    ),
    adapt=_adapt_emloop,
    catalogue=_emloop_hooks,
    packages={
        "emloop": f"{_HOME}.emloop",
        "cxflow": f"{_HOME}.emloop",
        "emloop_tensorflow": f"{_HOME}.emloop.tensorflow_hooks",
        "cxflow_tensorflow": f"{_HOME}.emloop.tensorflow_hooks",
    },
    gives_all=True,  # emloop passes model, dataset and output_dir to every hook.
)


def _adapt_vissl(hook: object) -> list[Hook]:
    from hookloop_dialects.vissl.adapter import adapt

    return adapt(hook)


def _vissl_hooks() -> Mapping[str, str]:
    from hookloop_dialects.vissl.catalogue import CATALOGUE

    return CATALOGUE


# VISSL has no base class of its own: its hooks derive from ClassyVision's.
VISSL = Dialect(
    name="vissl",
    bases=_bases(f"{_HOME}.vissl", ("classy_vision", "ClassyHook")),
    adapt=_adapt_vissl,
    catalogue=_vissl_hooks,
    packages={
        "vissl": f"{_HOME}.vissl",
        "classy_vision": f"{_HOME}.vissl.classy_vision",
        # Packages that both depend on, with the few names that files of hooks import from them.
        "fvcore": f"{_HOME}.vissl.fvcore",
        "iopath": f"{_HOME}.vissl.iopath",
        "fairscale": f"{_HOME}.vissl.fairscale",
    },
    registries=((f"{_HOME}.vissl.classy_vision.hooks.registry", "HOOK_REGISTRY", "classes"),),
)


def _adapt_imix(hook: object) -> list[Hook]:
    from hookloop_dialects.imix.adapter import adapt

    return adapt(hook)


def _imix_hooks() -> Mapping[str, str]:
    from hookloop_dialects.imix.catalogue import CATALOGUE

    return CATALOGUE


IMIX = Dialect(
    name="imix",
    bases=_bases(f"{_HOME}.imix", ("imix", "HookBase")),
    adapt=_adapt_imix,
    catalogue=_imix_hooks,
    packages={"imix": f"{_HOME}.imix"},
    registries=((f"{_HOME}.imix.engine.hooks.builder", "HOOKS", "_registered"),),
    settings=("level",),  # A key of a config's entry that is not a constructor argument.
    sections=("custom_hooks",),
    keys={"custom_hooks": "hooks"},
)


def _adapt_pointrix(hook: object) -> list[Hook]:
    from hookloop_dialects.pointrix.adapter import adapt

    return adapt(hook)


def _pointrix_hooks() -> Mapping[str, str]:
    from hookloop_dialects.pointrix.catalogue import CATALOGUE

    return CATALOGUE


POINTRIX = Dialect(
    name="pointrix",
    bases=_bases(f"{_HOME}.pointrix", ("pointrix", "Hook")),
    adapt=_adapt_pointrix,
    catalogue=_pointrix_hooks,
    packages={"pointrix": f"{_HOME}.pointrix"},
    registries=((f"{_HOME}.pointrix.hook.base_hook", "HOOK_REGISTRY", "_registered"),),
)
