"""The keys that a config may have: settings of a training, and what concerns the config itself."""

from __future__ import annotations

from typing import cast

from hookloop.config.tree import Tree
from hookloop.runs.moved_settings import is_group
from hookloop.trainer.settings import KEYS as OF_TRAINER

ABOUT: dict[str, object] = {
    "name": str | None,
    "imports": str | list[str],
    "import_path": str | list[str],
    "vars": dict[str, object] | None,
    "tags": str | list[str],
    "notes": str,
}
"""Keys that the Trainer does not see."""

SHOWN = ("name", "run_dir", "resume", "imports", "import_path")
"""Keys whose values become names of files or modules, so a secret cannot be used there."""

KEYS = (*OF_TRAINER, *ABOUT)


def has_setting(tree: Tree, path: str) -> bool:
    """Return whether a config has the setting of a path, such as ``data.limit``.

    >>> has_setting({"val_every": 5}, "val_every"), has_setting({"val_every": 5}, "val_every.begin")
    (True, False)
    """
    argument, _, name = path.partition(".")
    value = tree.get(argument)
    if argument == "val_every" and is_group(value) is not bool(name):
        return False
    return isinstance(value, dict) and name in value if name else argument in tree


def setting_of(tree: Tree, path: str) -> object:
    """Return the value of a setting; None where the config does not have it."""
    if not has_setting(tree, path):
        return None
    argument, _, name = path.partition(".")
    return cast("Tree", tree[argument])[name] if name else tree[argument]
