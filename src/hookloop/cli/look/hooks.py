"""``hookloop hooks``: list the hooks and their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import click

from hookloop.cli.look.completing import complete_hook
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.shared.table import show_table


@click.command("hooks", short_help="List the hooks, or describe one.")
@click.argument("name", required=False, shell_complete=complete_hook)
@reporting
def command(name: str | None) -> int:
    """List the hooks that a config can name; with NAME, a name or a path, describe that one."""
    from hookloop.config.load import extend_import_path
    from hookloop.config.registry import HOOKS

    extend_import_path([Path.cwd()])  # So that a hook of the project can be named by its path.
    if name is not None:
        hook = HOOKS.get(name)
        described = _describe(name, hook)
        set_result({"name": name, "parameters": parameters(hook), "description": described})
        print_text(described)
        return 0
    rows = [
        (listed, parameters(HOOKS.get(listed)), _first_line(HOOKS.get(listed)))
        for listed in HOOKS.names()
    ]
    set_result([{"name": n, "parameters": p, "doc": doc} for n, p, doc in rows])
    show_table(("hook", "parameters", "what it does"), rows, wide=("parameters", "what it does"))
    return 0


def parameters(hook: Callable[..., object]) -> str:
    """Return the parameters of a hook's constructor, with defaults."""
    found = inspect.signature(hook).parameters.values()
    return ", ".join(
        str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in found
    )


def _first_line(hook: object) -> str:
    return (inspect.getdoc(hook) or "").partition("\n")[0]


def _describe(name: str, hook: Callable[..., object]) -> str:
    from hookloop.engine.hook import Hook, Priority
    from hookloop.engine.points import POINTS
    from hookloop.trainer.adapters import dialect_of_class

    lines = [
        f"{name}({parameters(hook)})",
        "",
        inspect.getdoc(hook) or "It has no description.",
        "",
    ]
    dialect = dialect_of_class(hook) if isinstance(hook, type) else None
    # A foreign hook has none of our mount points and declares nothing of ours.
    if dialect is not None:
        return "\n".join([*lines, f"dialect:   {dialect.name} (docs/dialects/{dialect.name}.md)"])
    acts_at = [
        point.name
        for point in POINTS
        if getattr(hook, point.name, None) is not getattr(Hook, point.name)
    ]
    lines.append(f"acts at:   {', '.join(acts_at) or 'points that depend on its arguments'}")
    priority = getattr(hook, "priority", Priority.NORMAL)
    # It may be a property, of which the class has no value.
    if isinstance(priority, int | str):
        lines.append(f"priority:  {Priority.parse(priority)}")
    for label in ("reads", "writes"):
        names = getattr(hook, label, ())
        if isinstance(names, tuple | list) and names:
            lines.append(f"{label + ':':<10} {', '.join(names)}")
    return "\n".join(lines)
