"""From the path ``package.module.Class`` to the class, with the reason when there is none."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from traceback import extract_tb
from types import ModuleType

from hookloop.errors import ConfigError, Fault, nearest


def locate(path: str) -> object:
    """Import what a dotted path or ``module:Name`` stands for.

    A module that exists and fails while it is imported raises its own error, never 'not found'.

    >>> locate("collections:OrderedDict").__name__
    'OrderedDict'
    >>> locate("collections.abc.Mapping").__name__
    'Mapping'
    """
    if ":" in path:
        module_name, _, attribute = path.partition(":")
        module = _import(module_name)
        if module is None:
            raise _refusal(f"there is no module '{module_name}'.{_where_searched(module_name)}")
        return _descend(module, attribute.split("."), path)
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        module = _import(".".join(parts[:count]))
        if module is not None:
            return _descend(module, parts[count:], path)
    raise _refusal(f"there is no module '{parts[0]}'.{_where_searched(path)}")


def describe(error: BaseException) -> str:
    """Say an exception in one line, with the place that raised it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    frames = [frame for frame in extract_tb(error.__traceback__) if "<frozen" not in frame.filename]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _import(name: str) -> ModuleType | None:
    """Import a module; None only when the module itself, or a package above it, does not exist."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            return None
        raise


def _descend(module: ModuleType, attributes: list[str], path: str) -> object:
    found: object = module
    for attribute in attributes:
        if isinstance(found, Mapping | Sequence) and not isinstance(found, str):
            found = _entry(found, attribute, path)
            continue
        if not hasattr(found, attribute):
            owner = getattr(found, "__name__", str(found))
            kind = "module" if isinstance(found, ModuleType) else "class"
            raise _refusal(
                f"the {kind} '{owner}' has no '{attribute}'.{nearest(attribute, _members(found))}"
            )
        found = getattr(found, attribute)
    if isinstance(found, ModuleType):
        raise _refusal(f"'{path}' is a module: name the class or function in it.")
    return found


def _entry(owner: Mapping[object, object] | Sequence[object], step: str, path: str) -> object:
    """Return an entry of a list or mapping that a module holds: ``module:hooks.0``."""
    if isinstance(owner, Mapping):
        options = {str(key): value for key, value in owner.items()}
    else:
        options = {str(index): value for index, value in enumerate(owner)}
    if step not in options:
        raise _refusal(f"'{path}' leads nowhere: there is no '{step}'.{nearest(step, options)}")
    return options[step]


def _members(owner: object) -> list[str]:
    names = [name for name in dir(owner) if not name.startswith("_")]
    return names + [module.name for module in pkgutil.iter_modules(getattr(owner, "__path__", ()))]


def _where_searched(name: str) -> str:
    top = name.partition(".")[0]
    known = [module.name for module in pkgutil.iter_modules()]
    return nearest(top, known) + (
        " Modules are looked for beside the config file and its bases, in the working directory, "
        "in 'import_path' and among the installed packages."
    )


def _refusal(message: str) -> ConfigError:
    return ConfigError([Fault(message)])
