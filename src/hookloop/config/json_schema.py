"""A JSON Schema of configs, for editors: they complete keys and hooks, and mark what is wrong.

It accepts every config that `hookloop check` accepts, and rejects what can be seen without
importing anything of a project: unknown keys, values of the wrong type, unknown arguments of
built-in hooks.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hookloop.config.namespaces import hooks as built_in_hooks
from hookloop.config.other_keys import other_keys
from hookloop.config.parts.hooks import SETTINGS as HOOK_SETTINGS
from hookloop.config.parts.signature import Signature, members
from hookloop.config.registry import HOOKS, LOSSES, OPTIMIZERS, SCHEDULES
from hookloop.config.schema import ABOUT
from hookloop.every import Every
from hookloop.trainer.default_hooks import KNOWN_HOOKS
from hookloop.trainer.settings import FLAT, GROUPS, Group, Setting
from hookloop.trainer.trainer import Trainer

Schema = dict[str, object]

REFERENCE: Schema = {"type": "string", "pattern": r"\$\{"}
"""A reference to another value, the environment or a secret may stand for any value."""

ANY: Schema = {}
OBJECT: Schema = {"type": "object", "anyOf": [{"required": ["type"]}, {"required": ["ref"]}]}
"""A value that is built from a type, or imported."""

PLAIN: dict[object, Schema] = {
    None: {"type": "null"},
    types.NoneType: {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    Path: {"type": "string"},
    Every: {"type": ["string", "integer"]},
}

ARGUMENTS = "arguments-"
"""Begins the names of the schemas of the hooks' arguments."""

DOCS = {
    "_base_": "Files whose values this one changes: a path, or a list of them.",
    "name": "Added to the name of the run's directory.",
    "imports": "Modules to import first, so that what they register can be named.",
    "import_path": "Directories to find modules in, relative to this file.",
    "vars": "Values of your own, to refer to as ${vars.NAME}.",
}
"""Descriptions of the keys that are not arguments of the Trainer."""


def make_schema() -> Schema:
    """Return the JSON Schema of a config."""
    docs = DOCS | argument_docs(Trainer)
    known = {name: HOOKS.get(name) for name in built_in_hooks()}
    properties: Schema = {"_base_": {"type": ["string", "array"]}}
    for name, setting in FLAT.items():
        properties[name] = _of_setting(name, setting)
    for name, group in GROUPS.items():
        properties[name] = _group(group, properties.get(name))
    for name, annotation in ABOUT.items():
        properties[name] = _or_reference(schema_of(annotation))
    for name, schema in properties.items():
        properties[name] = {**typing.cast("Schema", schema), "description": docs.get(name, "")}
    for name, ours in other_keys().items():
        schema = {**typing.cast("Schema", properties[ours]), "description": f"Added to '{ours}'."}
        # A mapping may hold the values under our name.
        inner = {"type": "object", "properties": {ours: schema}}
        properties[name] = schema if ours == "hooks" else {"anyOf": [schema, inner]}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hookloop config",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "definitions": {
            "hook": _hook(list(known)),
            **{f"{ARGUMENTS}{name}": _arguments(hook) for name, hook in known.items()},
        },
    }


def schema_of(annotation: object, least: int | None = None) -> Schema:
    """Return the schema of the plain values that fit an annotation; anything if it is not plain.

    >>> schema_of(int | None, least=1)
    {'anyOf': [{'type': 'integer', 'minimum': 1}, {'type': 'null'}]}
    """
    found = [_of_member(member) for member in members(annotation)]
    if ANY in found:
        return ANY
    if least is not None:
        found = [{**one, "minimum": least} if one == PLAIN[int] else one for one in found]
    return found[0] if len(found) == 1 else {"anyOf": found}


def argument_docs(owner: object) -> dict[str, str]:
    """Return the description of each argument in a docstring, each in one line."""
    text = inspect.getdoc(owner) or ""
    section = re.search(r"^Args:\n((?:[ ]{4}.*\n|\n)*)", f"{text}\n", re.MULTILINE)
    entries = re.findall(
        r"^ {4}(\w+): ((?:.|\n(?! {4}\w+: ))*)", section[1] if section else "", re.MULTILINE
    )
    return {name: " ".join(doc.split()) for name, doc in entries}


def _of_member(member: object) -> Schema:
    if member in PLAIN:
        return PLAIN[member]
    origin = typing.get_origin(member) or member
    if origin is typing.Literal:
        return {"enum": list(typing.get_args(member))}
    if not isinstance(origin, type) or origin is object:
        return ANY
    if issubclass(origin, Mapping):
        return {"type": "object"}
    if issubclass(origin, Sequence) or origin is Iterable:
        return {"type": "array"}
    return ANY


def _of_setting(name: str, setting: Setting) -> Schema:
    if setting.form == "plain":
        return _or_reference(schema_of(setting.kind, least=setting.least))
    return _built(name)


def _group(group: type[Group], alone: object) -> Schema:
    """Return the schema of a mapping of settings, or of what may stand for it."""
    docs = argument_docs(group)
    inner = {
        name: {**_of_setting(name, one), "description": docs[name]}
        for name, one in group.settings().items()
        if one.form is not None
    }
    mapping: Schema = {
        "type": ["object", "null"],
        "properties": inner,
        "additionalProperties": False,
    }
    return {"anyOf": [alone, mapping]} if alone else mapping


def _or_reference(schema: Schema) -> Schema:
    return schema if schema == ANY else {"anyOf": [schema, REFERENCE]}


def _built(name: str) -> Schema:
    """Return the schema of a key whose value describes objects."""
    if name == "hooks":
        return {"anyOf": [_hook_list(), _hook_mapping(), {"type": "null"}]}
    if name == "default_hooks":
        entries = {key: _entry(hook.__name__) for key, hook in KNOWN_HOOKS.items()}
        return {"anyOf": [{"type": "object", "properties": entries}, {"enum": [False, None]}]}
    if name == "points":
        return {"type": ["array", "null"]}
    if name == "metrics":
        return {"type": ["object", "null"]}
    named = {"optimizer": OPTIMIZERS, "schedule": SCHEDULES, "loss": LOSSES}.get(name)
    kinds = _named([] if named is None else named.names())
    described: Schema = {
        "type": "object",
        "properties": {"type": {"anyOf": [kinds, {"type": "object"}]}},
    }
    return {"anyOf": [kinds, described, {"type": ["array", "null"]}]}


def _named(names: Sequence[str]) -> Schema:
    """Return the schema of a name; the known ones are offered, and any other may be registered."""
    return {"anyOf": [{"enum": list(names)}, {"type": "string"}]} if names else {"type": "string"}


def _hook_list() -> Schema:
    return {"type": "array", "items": {"anyOf": [{"$ref": "#/definitions/hook"}, {"type": "null"}]}}


def _hook_mapping() -> Schema:
    """Return the schema of hooks by name; the name may be that of the hook itself."""
    # `package.Hook: {arguments}`, of which nothing is known here.
    without_type: Schema = {"type": "object", "not": {"required": ["type"]}}
    return {
        "type": "object",
        "not": {"required": ["type"]},
        "properties": {name: _entry(name) for name in built_in_hooks()},
        "additionalProperties": {
            "anyOf": [{"$ref": "#/definitions/hook"}, without_type, {"type": "null"}]
        },
    }


def _entry(name: str) -> Schema:
    """Return the schema of a hook whose name shows its type: its arguments, or another type."""
    other = {"allOf": [{"required": ["type"]}, {"$ref": "#/definitions/hook"}]}
    return {"anyOf": [_arguments_of(name), other, {"type": ["string", "null"]}]}


def _arguments_of(name: str) -> Schema:
    return {"$ref": f"#/definitions/{ARGUMENTS}{name}"}


def _hook(names: Sequence[str]) -> Schema:
    """Return the schema of one hook: a name, ``{Name: {...}}``, or ``{type: Name, ...}``."""
    by_key = {
        "type": "object",
        "properties": {name: {"anyOf": [_arguments_of(name), {"type": "null"}]} for name in names},
        "maxProperties": 1,
        "additionalProperties": {"type": ["object", "null", "string"]},
    }
    by_type: list[object] = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": _arguments_of(name),
        }
        for name in names
    ]
    described = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"anyOf": [_named(names), {"type": "object"}]}},
        "allOf": by_type,
    }
    return {"anyOf": [_named(names), described, by_key]}


def _arguments(hook: object) -> Schema:
    """Return the schema of a built-in hook's arguments."""
    signature = Signature.of(typing.cast("typing.Callable[..., object]", hook))
    docs = argument_docs(hook)
    properties: Schema = {"type": {}}
    for name, annotation in {**HOOK_SETTINGS, **signature.annotations}.items():
        schema = schema_of(annotation)
        plain = schema if schema == ANY else {"anyOf": [schema, OBJECT, REFERENCE]}
        properties[name] = {**plain, "description": docs.get(name, "")}
    own: Schema = {"properties": properties}
    if not signature.is_open:
        own["additionalProperties"] = False
    summary = (inspect.getdoc(hook) or "").partition("\n")[0]
    # A hook of the same name in a dialect has arguments of its own.
    return {"type": "object", "description": summary, "anyOf": [own, {"required": ["dialect"]}]}
