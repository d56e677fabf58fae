"""The page of config keys: types from the schema, defaults and meanings from the Trainer."""

from __future__ import annotations

import inspect
import types
import typing

from hookloop import Trainer
from hookloop.config.schema import ABOUT
from hookloop.trainer.settings import FLAT, GROUPS, Group, Setting
from page_parts.docstrings import meanings

PAGE = """\
# Config keys

Every key that a config may have. [Config files](../config.md) explains them, with examples, and
`hookloop schema` prints them as a JSON Schema for editors. Any other key is rejected, and
the error names the nearest right one.

## What is built

Each value describes an object: a mapping with `type`, a name alone, or a list or a mapping of
these. They are built in this order.

| key | type in Python | default | |
|---|---|---|---|
{built}

## Settings

The Trainer gets these values as they are.

| key | type | default | |
|---|---|---|---|
{settings}

{groups}
## About the config itself

The Trainer does not see these.

| key | type | |
|---|---|---|
{about}
"""

ABOUT_KEYS = {
    "name": "Added to the name of the run's directory: `runs/2026-01-31_09-30-00_<name>`.",
    "imports": "Modules to import first, so that what they register can be named.",
    "import_path": "Directories to find modules in, relative to the file with this key; by "
    "default its own.",
    "vars": "Values of your own, to refer to: `${vars.width}`.",
    "tags": "Words to find the run by.",
    "notes": "A note about the run.",
}


def page() -> str:
    """Write the page of all keys."""
    if set(ABOUT_KEYS) != set(ABOUT):
        raise SystemExit(f"config_keys.py: describe {sorted(set(ABOUT) ^ set(ABOUT_KEYS))}.")
    return PAGE.format(
        built="\n".join(_row(key, one) for key, one in FLAT.items() if one.form != "plain"),
        settings="\n".join(_row(key, one) for key, one in FLAT.items() if one.form == "plain"),
        groups="\n".join(_group(key, group) for key, group in GROUPS.items()),
        about="\n".join(f"| `{key}` | {_type(ABOUT[key])} | {ABOUT_KEYS[key]} |" for key in ABOUT),
    )


def _group(argument: str, group: type[Group]) -> str:
    """Write the table of a group."""
    summary = (inspect.getdoc(group) or "").partition("\n")[0].replace("``", "`")
    rows = [
        _row(f"{argument}.{name}", one)
        for name, one in group.settings().items()
        if one.form is not None
    ]
    table = "\n".join(["| key | type | default | |", "|---|---|---|---|", *rows])
    return f"## `{argument}`\n\n{summary} In Python: `{group.__name__}(...)`.\n\n{table}\n"


def _row(key: str, setting: Setting) -> str:
    argument, _, name = key.partition(".")
    owner = GROUPS[argument] if name else Trainer
    parameter = inspect.signature(owner).parameters[name or argument]
    default = parameter.default
    shown = "required" if default is inspect.Parameter.empty else f"`{_in_yaml(default)}`"
    said = meanings(owner)[name or argument]
    least = f" At least {setting.least}." if setting.least is not None else ""
    written = _type(parameter.annotation if setting.form != "plain" else setting.kind)
    return f"| `{key}` | {written} | {shown} | {said}{least} |"


def _in_yaml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return {None: "null", (): "[]"}.get(value, str(value))  # type: ignore[call-overload, no-any-return]


def _type(kind: object) -> str:
    text = kind if isinstance(kind, str) else _named(kind)
    return f"`{text}`".replace("|", "\\|")


def _named(kind: object) -> str:
    """Write a type as a user would."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return " | ".join(_named(part) for part in typing.get_args(kind))
    if typing.get_origin(kind) is typing.Literal:
        return " | ".join(repr(value) for value in typing.get_args(kind))
    if kind is type(None):
        return "None"
    if typing.get_origin(kind) is not None:
        return str(kind)
    return kind.__name__ if isinstance(kind, type) else str(kind)
