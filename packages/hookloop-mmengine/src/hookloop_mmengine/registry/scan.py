"""``mmengine.registry``: what the registries of all projects hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from hookloop_mmengine.registry import root
from hookloop_mmengine.registry.registry import Registry


def traverse_registry_tree(registry: Registry, verbose: bool = True) -> list[dict[str, object]]:
    """Return for each registry of a tree its scope, and the names in it by their folders."""
    return [_described(one, verbose) for one in _tree(registry.root)]


def _tree(registry: Registry) -> Iterator[Registry]:
    yield registry
    for child in registry.children.values():
        yield from _tree(child)


def _described(registry: Registry, verbose: bool) -> dict[str, object]:
    from hookloop_mmengine.logging import print_log

    count, scope = len(registry.module_dict), registry.scope
    folders: dict[str, list[str]] = {}
    for name, registered in registry.module_dict.items():
        folder = "/".join(registered.__module__.split(".")[:-1])
        folders.setdefault(folder, []).append(name)
    if verbose:
        text = f"Find {count} modules in {scope}'s '{registry.name}' registry "
        print_log(text, logger="current")
    return {"num_modules": count, "scope": scope, **folders}


def count_registered_modules(
    save_path: str | None = None, verbose: bool = True
) -> dict[str, object]:
    """Return what `traverse_registry_tree` finds in all registries.

    Args:
        save_path: A directory to write it to, as JSON.
        verbose: Whether to log it.
    """
    from hookloop_mmengine.fileio import dump
    from hookloop_mmengine.logging import print_log

    found = {
        name: traverse_registry_tree(registry, verbose)
        for name, registry in sorted(vars(root).items())
        if isinstance(registry, Registry)
    }
    scan: dict[str, object] = {
        "scan_date": datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
        "registries": found,
    }
    if verbose:
        print_log(f"Finish registry analysis, got: {scan}", logger="current")
    if save_path is not None:
        path = Path(save_path) / "modules_statistic_results.json"
        dump(scan, str(path), indent=2)
        print_log(f"Result has been saved to {path}", logger="current")
    return scan
