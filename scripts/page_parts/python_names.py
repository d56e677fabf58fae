"""The pages of the public Python names: a table, and a directive from which the site shows each."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import cast

from hookloop.config.registry import Registry
from page_parts.docstrings import first_line

MODULES = {
    "hookloop": "What a training script imports.",
    "hookloop.commands": "What a command of another package is made of.",
    "hookloop.runs": "Read runs from disk, without torch.",
    "hookloop.writers": "Writers, and the records that they take: for writers of your own.",
    "hookloop.testing": "What a project needs to test its hooks.",
    "hookloop.errors": "What the engine raises when its user has to change something.",
    "hookloop.dialects": "What a dialect, the adapter of a foreign hook system, is made of.",
}
"""The modules with public names. Hooks have a page of their own."""

INDEX = """\
# Python

The names that a program may import. Everything else may change without notice. The
[hooks](../../hooks.md), from `hookloop.hooks`, have a page of their own.

| module | |
|---|---|
{rows}

All of it is typed: `py.typed` is in the package, and `mypy --strict` checks the sources.
"""

PAGE = """\
# {module}

{duty}

| name | |
|---|---|
{rows}
{directives}
"""


def pages(folder: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield a page for each module, and the one that leads to them."""
    rows = [f"| [`{name}`]({_file(name)}) | {duty} |" for name, duty in MODULES.items()]
    yield folder / "index.md", INDEX.format(rows="\n".join(rows))
    for module, duty in MODULES.items():
        yield folder / _file(module), _page(module, duty)


def _file(module: str) -> str:
    return f"{module.replace('.', '-')}.md"


def _page(name: str, duty: str) -> str:
    module = importlib.import_module(name)
    names = [public for public in module.__all__ if not public.startswith("__")]
    rows = [f"| `{public}` | {_duty(getattr(module, public))} |" for public in names]
    directives = [f"\n::: {name}.{public}" for public in names]
    return PAGE.format(
        module=name, duty=duty, rows="\n".join(rows), directives="\n".join(directives)
    )


def _duty(value: object) -> str:
    function = inspect.unwrap(cast("Callable[..., object]", value))
    if inspect.isclass(value) or inspect.isroutine(function):
        return first_line(value).replace("|", "\\|")
    if isinstance(value, Registry | Mapping):
        return _listed(value)
    if type(value).__module__.startswith("hookloop"):
        return f"A `{type(value).__name__}`: {first_line(type(value))}"
    if isinstance(value, str | int | tuple):
        return f"`{value!r}`."
    if type(value) is object:
        return "A marker, compared with `is`."
    return f"A type, `{value}`.".replace("|", "\\|").replace("typing.", "")


def _listed(value: Registry[object] | Mapping[str, object]) -> str:
    if isinstance(value, Registry):
        many = f"{value.kind}es" if value.kind.endswith("s") else f"{value.kind}s"
        return f"A `Registry`: the {many} that a config can name."
    return f"A mapping with the keys {', '.join(f'`{key}`' for key in value)}."
