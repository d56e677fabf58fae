"""References in values: ``${optimizer.lr}``, ``${env:HOME}``, ``${env:SEED,0}``, ``${secret:KEY}``.

A reference that is the whole value keeps the type of its target; inside text, it becomes text.
``$${`` stands for the characters ``${``. A value that came from the environment, or is a secret, is
also remembered as a reference, because it is written to disk as one.
"""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path

import yaml

from hookloop.config.other_keys import written_as
from hookloop.config.reading.yaml_file import parse_value
from hookloop.config.schema import SHOWN
from hookloop.config.tree import Config, Key, nodes, spell
from hookloop.errors import HookloopError, nearest
from hookloop.secret import Reference, Secret

SECRET = "${secret:"

# Not after a second $, which escapes it.
_REFERENCE = re.compile(r"(?<!\$)\$\{([^${}]*)\}")
_ESCAPED = re.compile(r"\$\$\{|\$\{([^${}]*)\}")


class _Unresolved(Exception):
    """A reference to nothing or to itself, with the message for the user."""


def interpolate(config: Config) -> None:
    """Replace every reference in the tree; those that lead nowhere become problems."""
    # First with the references to the outside left in, which is the text to write to disk.
    kept = Interpolation(config, keeps=True).outside()
    Interpolation(config).run()
    for key, text in kept.items():
        value = config.at(key)
        if isinstance(value, str) and SECRET in text and value != text:
            value = Secret(value, text)
            if key[0] in (*SHOWN, *written_as("imports")) or key[-1] == "type":
                value = text
                message = f"{spell(key)}: a secret cannot be used here: it would be shown."
                config.add_problem(key, message)
            config.put(key, value)
        config.references[key] = Reference(text, value)


def escape(text: str) -> str:
    """Escape text that is not a reference, so that it is read back as it is.

    >>> escape("costs ${price}")
    'costs $${price}'
    """
    return text.replace("${", "$${")


class Interpolation:
    """One pass over a tree; the target of a reference is resolved before it is used.

    Args:
        config: The config.
        keeps: Whether references to the environment and to secrets stay as they are written.
    """

    def __init__(self, config: Config, *, keeps: bool = False) -> None:
        self.config = config
        self.keeps = keeps
        self.open: list[str] = []

    def outside(self) -> dict[Key, str]:
        """Return the values that depend on the environment or a secret, as references to it."""
        found: dict[Key, str] = {}
        for key, value in nodes(self.config.tree):
            if isinstance(value, str) and "${" in value:
                try:
                    kept = self._resolve(value)
                except _Unresolved:  # `run` reports it.
                    continue
                found |= {
                    below: text
                    for below, text in nodes(kept, key)
                    if isinstance(text, str) and _REFERENCE.search(text)
                }
        return found

    def run(self) -> None:
        """Resolve the references of the whole tree."""
        # A list, because the tree changes during the walk.
        for key, value in list(nodes(self.config.tree)):
            if isinstance(value, str) and "${" in value:
                try:
                    resolved = self._resolve(value)
                except _Unresolved as problem:
                    self.config.add_problem(key, f"{spell(key)}: {problem}")
                    continue
                self.config.put(key, resolved)
                if resolved is None:
                    # Somebody referred to a null on purpose: it must not be reported as removing
                    # nothing.
                    self.config.removed.add(key)

    def _resolve(self, text: str, *, is_whole: bool = True) -> object:
        whole = _REFERENCE.fullmatch(text)
        if whole:
            return self._look_up(whole[1], is_whole=is_whole)
        return _ESCAPED.sub(self._fill, text)

    def _fill(self, found: re.Match[str]) -> str:
        if found[0] == "$${":
            return found[0] if self.keeps else "${"
        # Plain text, also of a secret: the caller makes the whole text a secret.
        return str.__str__(str(self._look_up(found[1], is_whole=False)))

    def _look_up(self, name: str, *, is_whole: bool) -> object:
        if name.startswith(("env:", "secret:")) and self.keeps:
            return f"${{{name}}}"
        if name.startswith("env:"):
            return _environment(name.removeprefix("env:"), is_whole=is_whole)
        if name.startswith("secret:"):
            return _secret(name.removeprefix("secret:").strip())
        if name in self.open:
            circle = " -> ".join([*self.open[self.open.index(name) :], name])
            raise _Unresolved(f"'${{{name}}}' refers to itself: {circle}.")
        self.open.append(name)
        try:
            value = self._value(name)
            # A copy, so that changing one of the two places later leaves the other alone.
            copied = self._deep(copy.deepcopy(value), is_whole=is_whole)
            # Origins are known by the id, and the copy has another one.
            if id(value) in self.config.origins and not self.keeps:
                self.config.origins[id(copied)] = self.config.origins[id(value)]
            return copied
        finally:
            self.open.pop()

    def _deep(self, value: object, *, is_whole: bool = True) -> object:
        if isinstance(value, str):
            return self._resolve(value, is_whole=is_whole) if "${" in value else value
        if isinstance(value, dict):
            return {name: self._deep(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._deep(item) for item in value]
        return value

    def _value(self, name: str) -> object:
        value: object = self.config.tree
        for step in name.split("."):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                names = [_dotted(key) for key, _ in nodes(self.config.tree) if key]
                raise _Unresolved(f"'${{{name}}}' refers to nothing.{nearest(name, names)}")
        return value


def _environment(text: str, *, is_whole: bool) -> object:
    name, comma, default = text.partition(",")
    found = os.environ.get(name.strip())
    if found is None:
        if not comma:
            raise _Unresolved(
                f"the environment variable '{name.strip()}' is not set. "
                f"Set it, or give a default: ${{env:{name.strip()},default}}."
            )
        found = default.strip()
    return _scalar(found) if is_whole else found


def _secret(name: str) -> str:
    try:
        return read_secret(name)
    except HookloopError as error:
        raise _Unresolved(str(error)) from error


def _scalar(text: str) -> object:
    """Read a variable as a value of a config, because the environment holds only text."""
    try:
        value = parse_value(text)
    except yaml.YAMLError:
        return text
    # A variable that looks like a list or a mapping, such as `a: b`, stays text.
    return value if isinstance(value, int | float | None) else text


def _dotted(key: Key) -> str:
    return ".".join(str(step) for step in key)


FILE = "file:"
LONGEST = 1 << 16
"""The most characters of a file with a secret; a larger file is something else."""


def read_secret(name: str) -> Secret:
    """Read a secret.

    Args:
        name: An environment variable; if it is not set, the variable ``<name>_FILE`` may name a
            file instead. Or ``file:`` and the path of a file.

    Raises:
        HookloopError: If there is no secret, or it cannot be read.
    """
    if name.startswith(FILE):
        text = _read_file(name.removeprefix(FILE).strip())
    elif (found := os.environ.get(name)) is not None:
        text = found
    # The convention of container images, whose secrets are mounted as files.
    elif (file := os.environ.get(f"{name}_FILE")) is not None:
        text = _read_file(file)
    else:
        raise HookloopError(
            f"the secret '{name}' is missing: set the environment variable {name}, or let "
            f"{name}_FILE name a file that holds it."
        )
    if not text:
        raise HookloopError(f"the secret '{name}' is empty.")
    return Secret(text, f"${{secret:{name}}}")


def _read_file(path: str) -> str:
    file = Path(path).expanduser()
    if not file.is_absolute():  # A run may be continued from another working directory.
        raise HookloopError(f"the file of a secret needs an absolute path, not '{path}'.")
    try:
        with file.open(encoding="utf-8") as opened:
            # One more than allowed shows that it is too large, without reading all of it.
            text = opened.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise HookloopError(f"the file '{path}' with a secret cannot be read: {reason}.") from error
    if len(text) > LONGEST:
        raise HookloopError(f"the file '{path}' is too large to be a secret.")
    return text.strip()  # An editor ends the file with a newline, which is not part of the secret.
