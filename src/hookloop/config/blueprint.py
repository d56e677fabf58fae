"""Check a config as far as possible without building anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from hookloop import peers
from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.config import namespaces
from hookloop.config import registry as registries
from hookloop.config.load import extend_import_path
from hookloop.config.locate import describe, load_module
from hookloop.config.other_keys import missing_key, other_keys, written_as
from hookloop.config.parts.hooks import read_default_hooks, read_hooks
from hookloop.config.parts.optimizers import is_named, read_optimizers, read_schedules
from hookloop.config.parts.part import TYPE, Description, PartReader
from hookloop.config.parts.signature import Signature
from hookloop.config.registry import Registry
from hookloop.config.schema import ABOUT, KEYS, has_setting, setting_of
from hookloop.config.tree import Config, Key
from hookloop.engine.points import Point
from hookloop.errors import HookError, HookloopError, nearest
from hookloop.runs.moved_settings import MOVED, is_group
from hookloop.trainer.settings import GROUPS, IN_CONFIGS, unknown_setting

_PREPARATIONS: Registry[object] = Registry(
    "preparation", "hookloop.preparations", builtin=namespaces.preparations
)
_HOMES: dict[str, Registry[object]] = {
    "loss": registries.LOSSES,
    "step": Registry("step", "hookloop.steps"),
    "metrics": registries.METRICS,
    "data.count_tokens": Registry("count_tokens", "hookloop.counters"),
}
"""Where the names of functions are looked up."""


@dataclass
class Blueprint:
    """What to build, by the keys of the config; a `Part` stands for each object.

    Attributes:
        parts: Model, data, loss, step and metrics, by the paths of their settings.
        optimizers: Optimizers by name.
        schedules: Schedules by the name of their optimizer.
        hooks: Hooks in order.
        default_hooks: Changes to the standard set.
        points: Mount points of the project.
        load_from: Weights to begin with.
        prepare: What is done to the model first.
        settings: Plain values for the Trainer, by the paths of their settings.
    """

    parts: dict[str, object] = field(default_factory=dict)
    optimizers: dict[str, object] = field(default_factory=dict)
    schedules: dict[str, object] = field(default_factory=dict)
    hooks: list[object] = field(default_factory=list)
    default_hooks: dict[str, object] | Literal[False] | None = None
    points: list[object] = field(default_factory=list)
    load_from: object = None
    prepare: list[object] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)


def draw(config: Config) -> Blueprint:
    """Resolve every name in a config and check every argument.

    Raises:
        ConfigError: With all problems that were found, including those of reading the files.
    """
    # Imports come first: they may register the names that the rest of the config uses.
    extend_import_path(import_path(config))
    reader = PartReader(config)
    _import_modules(reader)
    _check_keys(reader)
    # `vars` are values for interpolation: nothing there is built.
    tree = config.tree
    reader.resolve_objects([name for name in (*KEYS, *other_keys()) if name != "vars"])
    for group in GROUPS:
        if isinstance(tree.get(group), dict):
            reader.resolve_objects(list(GROUPS[group].settings()), (group,))
    blueprint = Blueprint(parts=_parts(reader))
    blueprint.optimizers = read_optimizers(reader, ("optimizer",), tree.get("optimizer"))
    blueprint.schedules = read_schedules(
        reader, ("schedule",), tree.get("schedule"), blueprint.optimizers
    )
    for name in written_as("hooks"):
        blueprint.hooks += read_hooks(reader, (name,), tree.get(name))
    blueprint.default_hooks = read_default_hooks(
        reader, ("default_hooks",), tree.get("default_hooks")
    )
    blueprint.points = _points(reader, ("setup", "points"), setting_of(tree, "setup.points"))
    blueprint.settings = _settings(reader)
    prepare = ("setup", "prepare")
    blueprint.prepare = _preparations(reader, prepare, setting_of(tree, "setup.prepare"))
    weights = ("setup", "load_from")
    blueprint.load_from = _weights(reader, weights, setting_of(tree, "setup.load_from"))
    # Only here, so that one run of the check shows all of them.
    reader.raise_problems()
    return blueprint


def import_path(config: Config) -> list[Path]:
    """List the directories in which the config's modules are searched, in order."""
    home = config.path.parent
    # The working directory is last, so that the project's own modules win.
    written = config.tree.get("import_path")
    if written is None:
        return _distinct([home, Path.cwd()])
    entries = written if isinstance(written, list) else [written]
    return _distinct([*((home / str(entry)).resolve() for entry in entries), Path.cwd()])


def _distinct(paths: list[Path]) -> list[Path]:
    return list(dict.fromkeys(paths))


def _import_modules(reader: PartReader) -> None:
    """Import the modules that the config lists, so that their registrations take effect."""
    tree = reader.config.tree
    for written in written_as("imports"):
        key: Key = (written,)
        names = tree.get(written)
        if isinstance(names, dict):
            key, names = (*key, "imports"), names.get("imports")
        for index, name in enumerate(names if isinstance(names, list) else [names]):
            at = (*key, index) if isinstance(names, list) else key
            if isinstance(name, str):
                _import_module(reader, at, name)


def _import_module(reader: PartReader, key: Key, name: str) -> None:
    try:
        load_module(name)
    except HookloopError as error:
        reader.report(key, str(error))
    except Exception as error:  # noqa: BLE001 - reported with its cause
        reader.report(key, f"'{name}' could not be imported: {describe(error)}", error)


def _check_keys(reader: PartReader) -> None:
    tree = reader.config.tree
    for name in tree:
        if name not in KEYS and name not in other_keys():
            reader.report((name,), f"there is no such key.{_hint_for_key(reader, str(name))}")
    for argument in GROUPS:
        _check_group(reader, argument, tree.get(argument))
    for name, annotation in ABOUT.items():
        if name in tree:
            reader.plain((name,), tree[name], annotation)
    if tree.get("model") is None:
        reader.report((), "a config needs 'model'.")


def _check_group(reader: PartReader, argument: str, value: object) -> None:
    """Report settings that a group does not have."""
    if value is None or (argument == "val_every" and not is_group(value)):
        return
    if not isinstance(value, dict):
        names = ", ".join(GROUPS[argument].settings())
        hint = " The data to train on is 'train_data'." if argument == "data" else ""
        message = f"expected a mapping of settings ({names}), got {value!r}.{hint}"
        reader.report((argument,), message)
        return
    for name in value:
        if f"{argument}.{name}" not in IN_CONFIGS:
            reader.report((argument, name), unknown_setting(argument, str(name)))


def _hint_for_key(reader: PartReader, name: str) -> str:
    """Return a hint for a key that does not exist."""
    if name in MOVED:
        return f" Write {'.'.join(MOVED[name])}: it is in the group '{MOVED[name][0]}' now."
    ours = peers.translation(name, peers.INNER_KEYS) or peers.translation(name, peers.ARGUMENTS)
    if ours is not None:
        return f" Did you mean '{ours}'?"
    advice = next((what for what, names in peers.ADVICE.items() if name in names.split()), None)
    if advice is not None:
        return f" In Python, {advice}."
    own = f"_{name}" if reader.config.path.suffix == ".py" else f"vars.{name}"
    if hint := missing_key(name):
        return hint
    return nearest(name, KEYS) or f" Write a value of your own as {own}."


def _settings(reader: PartReader) -> dict[str, object]:
    tree = reader.config.tree
    settings: dict[str, object] = {}
    for path, setting in IN_CONFIGS.items():
        key = tuple(path.split("."))
        if setting.form != "plain" or not has_setting(tree, path):
            continue
        settings[path] = value = reader.plain(key, setting_of(tree, path), setting.kind)
        # A value of the wrong type is reported already, and cannot be compared.
        if setting.least is not None and isinstance(value, int) and value < setting.least:
            reader.report(key, f"must be at least {setting.least}, got {value}.")
    return settings


def _parts(reader: PartReader) -> dict[str, object]:
    tree = reader.config.tree
    data = registries.DATA
    parts: dict[str, object] = {}
    if tree.get("model") is not None:
        models = registries.MODELS
        parts["model"] = reader.part(("model",), tree["model"], models)
    for path in [path for path, one in IN_CONFIGS.items() if one.form == "data"]:
        value, key = setting_of(tree, path), tuple(path.split("."))
        # Without a word on how to mix streams, text among the values shows a misspelled 'type'.
        has_text = isinstance(value, dict) and any(isinstance(one, str) for one in value.values())
        is_one = path == "train_data" and has_text and setting_of(tree, "data.mix") is None
        if is_named(value) and not is_one:
            streams = cast("dict[str, object]", value).items()
            parts[path] = {
                stream: reader.part((*key, stream), item, data)
                for stream, item in streams
                if not reader.is_removed((*key, stream), item, dict(streams))
            }
        elif value is not None:
            parts[path] = reader.part(key, value, data)
    for path in [path for path, one in IN_CONFIGS.items() if one.form == "function"]:
        value = setting_of(tree, path)
        if value is not None:
            parts[path] = _functions(reader, path, value, _HOMES[path])
    return parts


def _functions(reader: PartReader, path: str, value: object, home: Registry[object]) -> object:
    """Read a loss or a step; ``step`` may be a mapping from names, ``metrics`` has to be one."""
    key, name = tuple(path.split(".")), path
    if name != "loss" and isinstance(value, dict) and TYPE not in value:
        return {
            inner: reader.function((*key, inner), item, home)
            for inner, item in value.items()
            if not reader.is_removed((*key, inner), item, value)
        }
    if name == "metrics" and not isinstance(value, dict):
        example = "{accuracy: ...}"
        if isinstance(value, str):
            known = value if value in home else home.path_of(value)
            example = f"{{{value.rpartition('.')[2]}: {known}}}"
        reader.report((name,), f"expected a mapping from names to metrics, {example}.")
        return None
    return reader.function(key, value, home)


def _weights(reader: PartReader, key: Key, value: object) -> object:
    """Read a path, or a mapping with the arguments of `Pretrained`."""
    if not isinstance(value, dict):
        return reader.plain(key, value, str | None)
    # The type is the class itself, so nothing is looked up in the registry.
    return reader.read(Description(key, Pretrained, key, value, key), registries.MODELS)


def _preparations(reader: PartReader, key: Key, value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        example = value if isinstance(value, str | dict) else "..."
        reader.report(key, f"expected a list of preparations. Write [{example}].")
        return []
    return [reader.part((*key, n), item, _PREPARATIONS) for n, item in enumerate(value)]


def _points(reader: PartReader, key: Key, value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        reader.report(key, f"expected a list of mount points, got {value!r}.")
        return []
    points: list[object] = []
    signature = Signature.of(Point)
    for index, item in enumerate(value):
        at = (*key, index)
        fields = dict(item) if isinstance(item, dict) else {"name": item}
        for name in fields:
            unknown = signature.unknown(str(name))
            if unknown:
                reader.report((*at, name), unknown)
        read = {
            name: reader.plain((*at, name), fields[name], annotation)
            for name, annotation in signature.annotations.items()
            if name in fields
        }
        try:
            points.append(item if isinstance(item, Point) else Point(**read))  # type: ignore[arg-type]
        except HookError as error:
            reader.report(at, str(error))
        # The other arguments have been checked, so only a missing name is left.
        except TypeError:
            reader.report(at, "a mount point needs 'name'.")
    return points
