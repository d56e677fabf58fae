"""What a shell offers when TAB is pressed: keys of configs, hooks, runs.

It has to be fast, so nothing here imports torch, and it runs no code of a project: Python configs
are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Literal, Union, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from hookloop.errors import HookloopError

DEFAULT_HOOKS = {
    "timing": "RecordTimes",
    "console": "ShowProgress",
    "metrics": "WriteMetrics",
    "schedule": "StepSchedules",
    "sampler": "SetSamplerEpoch",
    "nan": "RequireFiniteLoss",
    "checkpoint": "SaveCheckpoint",
    "signals": "StopOnSignal",
    "environment": "RecordEnvironment",
    "requests": "AnswerRequests",
    "buffers": "SyncBuffers",
}
"""The default hooks by name; the table of the trainer imports torch."""

OF_EVERY_HOOK = ("name", "priority", "every", "on_error")
OF_PARTS = {
    "optimizer": ("type", "lr", "weight_decay", "momentum", "params", "groups"),
    "schedule": ("type", "every", "metric"),
    "model": ("type",),
    "train_data": ("type",),
    "val_data": ("type",),
    "data.test": ("type",),
    "data.predict": ("type",),
}
"""Keys that parts usually have, besides those that the config gives them."""

ROOT = Path("runs")

Verb = Callable[..., object]


def run_argument(function: Verb) -> Verb:
    """Add the argument RUN, the directory of a run."""
    return click.argument(
        "run",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        shell_complete=complete_run,
    )(function)


def complete_run(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the runs in ``runs/``, the newest first; otherwise any directory."""
    from hookloop.runs.layout import RunDir

    found = [path for path in _directories(ROOT) if RunDir(path).can_be_continued()]
    found.sort(key=lambda path: path.name, reverse=True)
    fitting = [str(path) for path in found if str(path).startswith(incomplete)]
    return [*map(CompletionItem, fitting)] or [CompletionItem(incomplete, type="dir")]


def complete_hook(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the names of the built-in hooks."""
    from hookloop.hooks import __all__ as names

    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_override(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer keys of the config, ``optimizer.lr=``, and the values of those that have few."""
    given = context.params.get("overrides") or ()
    # bash hands over `precision=b` as three words, zsh and fish as one.
    if given and given[-1] == "=":
        return [CompletionItem(v) for v in _values(given[-2]) if v.startswith(incomplete)]
    if "=" in incomplete:
        key, _, begun = incomplete.partition("=")
        return [CompletionItem(f"{key}={v}") for v in _values(key) if v.startswith(begun)]
    tree = _read(context.params.get("config") or context.params.get("run"))
    above, dot, _ = incomplete.rpartition(".")
    options = _children(tree, above.split(".")) if dot else _top(tree)
    found = dict.fromkeys(f"{above}{dot}{option}" for option in options)
    return [CompletionItem(key) for key in found if key.startswith(incomplete)]


def _directories(root: Path) -> list[Path]:
    try:
        return [path for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []


def _read(path: object) -> Mapping[str, object]:
    """Return the values of a YAML config; nothing if it cannot be read."""
    if path is None:
        return {}
    import yaml

    from hookloop.config.load import read

    try:
        return read(str(path)).tree
    # TAB never shows an error; the command itself will.
    except (HookloopError, OSError, ValueError, yaml.YAMLError):
        return {}


def _top(tree: Mapping[str, object]) -> Iterator[str]:
    from hookloop.config.schema import KEYS
    from hookloop.trainer.settings import FLAT, GROUPS

    holders = {"hooks", "default_hooks", "vars", *OF_PARTS, *GROUPS}
    for name in dict.fromkeys([*tree, *KEYS]):
        is_value = name in FLAT and FLAT[name].form == "plain"
        has_parts = isinstance(tree.get(name), dict | list) or (name in holders and not is_value)
        yield f"{name}." if has_parts else f"{name}="


def _children(tree: Mapping[str, object], path: list[str]) -> Iterator[str]:
    """Yield what may follow a path: keys of the config, and those that hooks and parts have."""
    from hookloop.config.other_keys import written_as

    node = _at(tree, path)
    if isinstance(node, dict):
        for name, value in node.items():
            yield f"{name}." if isinstance(value, dict | list) else f"{name}="
    elif isinstance(node, list):
        yield from (f"{name}." for name in map(_type_of, node) if name)
    match path:
        case ["hooks"] if not isinstance(node, list):
            from hookloop.hooks import __all__ as names

            yield from (f"{name}." for name in names)
        case ["default_hooks"]:
            yield from (f"{name}." for name in DEFAULT_HOOKS)
        case [written, name] if written in written_as("hooks"):
            yield from _of_hook(_written_type(node) or name)
        case ["default_hooks", name]:
            yield from _of_hook(_written_type(node) or DEFAULT_HOOKS.get(name, ""))
        case [*_] if ".".join(path) in OF_PARTS:
            yield from (f"{key}=" for key in OF_PARTS[".".join(path)])
        case [name]:
            yield from _of_group(name)


def _of_group(argument: str) -> Iterator[str]:
    from hookloop.trainer.settings import IN_CONFIGS

    for path in IN_CONFIGS:
        group, _, name = path.partition(".")
        if group == argument and name:
            yield f"{name}." if path in OF_PARTS else f"{name}="


def _of_hook(name: str) -> Iterator[str]:
    from hookloop.cli.look.hook_parameters import hook_parameters

    yield from (f"{key}=" for key in (*hook_parameters(name), *OF_EVERY_HOOK))


def _at(tree: object, path: list[str]) -> object:
    """Return the node at a path; an entry of a list of hooks is found by its type, too."""
    node = tree
    for step in path:
        if isinstance(node, dict):
            node = node.get(step)
        elif isinstance(node, list):
            named = {_type_of(item): item for item in node}
            found = node[int(step)] if step.isdigit() and int(step) < len(node) else None
            node = named.get(step, found)
            # `- StopAfter: {epochs: 3}`: its arguments are one level below.
            if isinstance(node, dict) and list(node) == [step]:
                node = node[step]
        else:
            return None
    return node


def _type_of(item: object) -> str:
    """Return the type of an entry of a list of hooks, in each form in which it can be written."""
    if isinstance(item, dict) and "type" not in item and len(item) == 1:
        return str(next(iter(item)))  # `- StopAfter: {epochs: 3}`
    return _written_type(item)


def _written_type(item: object) -> str:
    named = item.get("type") if isinstance(item, dict) else item
    return named if isinstance(named, str) else ""


def _values(key: str) -> list[str]:
    """Return the values of a setting that has only a few."""
    from hookloop.trainer.settings import IN_CONFIGS

    setting = IN_CONFIGS.get(key)
    annotation = setting.kind if setting is not None else None
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else [annotation]
    found: list[str] = []
    for member in members:
        if member is bool:
            found += ["true", "false"]
        elif get_origin(member) is Literal:
            found += [str(choice) for choice in get_args(member)]
    return found
