"""Import what a text names: a module, or the class at ``package.module.Class``.

All names that a config or a user gives are imported here, so that one place decides what is an
unknown name and what is an error of the imported code.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from traceback import extract_tb
from types import ModuleType

from hookloop.dialects import alias_hint
from hookloop.errors import ConfigError, Problem, nearest
from hookloop.trainer.adapters import missing_dialect


def load_module(name: str) -> ModuleType:
    """Import a module; whatever it raises is raised here."""
    return importlib.import_module(name)


def locate(path: str) -> object:
    """Import the object that a dotted path or ``module:Name`` names.

    A module that exists but fails during its import raises its own error, never 'not found'.

    >>> locate("collections:OrderedDict").__name__
    'OrderedDict'
    >>> locate("collections.abc.Mapping").__name__
    'Mapping'
    """
    if ":" in path:
        module_name, _, attribute = path.partition(":")
        module = _import(module_name)
        if module is None:
            raise _error(f"there is no module '{module_name}'.{_where_searched(module_name)}")
        return _descend(module, attribute.split("."), path)
    parts = path.split(".")
    # The longest module first: in `a.b.C`, `a.b` is mostly a module, but may be a class in `a`.
    for count in range(len(parts) - 1, 0, -1):
        module = _import(".".join(parts[:count]))
        if module is not None:
            return _descend(module, parts[count:], path)
    raise _error(f"there is no module '{parts[0]}'.{_where_searched(path)}")


def describe(error: BaseException) -> str:
    """Return an exception in one line, with the file and line that raised it."""
    # Its traceback ends where the file was imported; the error itself has the line.
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    # The frames of the import system itself are frozen: they lead nobody to the mistake.
    frames = [frame for frame in extract_tb(error.__traceback__) if "<frozen" not in frame.filename]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    hint = f". {alias_hint(error)}" if isinstance(error, ModuleNotFoundError) else ""
    return f"{type(error).__name__}: {error}{place}{hint}".removesuffix(". ")


def _import(name: str) -> ModuleType | None:
    """Import a module; return None only if it, or a package above it, does not exist."""
    try:
        return load_module(name)
    except ModuleNotFoundError as error:
        # Another name means that the module exists, and imports something that does not.
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
            raise _error(
                f"the {kind} '{owner}' has no '{attribute}'.{nearest(attribute, _members(found))}"
            )
        found = getattr(found, attribute)
    if isinstance(found, ModuleType):
        raise _error(f"'{path}' is a module: name the class or function in it.")
    return found


def _entry(owner: Mapping[object, object] | Sequence[object], step: str, path: str) -> object:
    """Return an entry of a list or mapping that a module holds: ``module:hooks.0``."""
    if isinstance(owner, Mapping):
        options = {str(key): value for key, value in owner.items()}
    else:
        options = {str(index): value for index, value in enumerate(owner)}
    if step not in options:
        raise _error(f"'{path}' leads nowhere: there is no '{step}'.{nearest(step, options)}")
    return options[step]


def _members(owner: object) -> list[str]:
    names = [name for name in dir(owner) if not name.startswith("_")]
    # `dir` lists only the submodules that were imported already.
    return names + [module.name for module in pkgutil.iter_modules(getattr(owner, "__path__", ()))]


def _where_searched(name: str) -> str:
    top = name.partition(".")[0]
    if hint := missing_dialect(top):
        return hint
    modules = [module.name for module in pkgutil.iter_modules()]
    return nearest(top, modules) + (
        " Modules are looked for beside the config file and its bases, in the working directory, "
        "in 'import_path' and among the installed packages."
    )


def _error(message: str) -> ConfigError:
    return ConfigError([Problem(message)])
