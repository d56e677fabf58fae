"""The page of hooks, by purpose."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

import hookloop.hooks
from hookloop.engine.hook import Hook, Priority
from hookloop.engine.points import PointTable
from hookloop.trainer.default_hooks import KNOWN_HOOKS
from page_parts.docstrings import in_markdown, meanings, sections

TABLE = Path(__file__).parent / "hook_table.yaml"

PAGE = """\
# Hooks

The {count} hooks that come with hookloop, by purpose. In a config each is written
by its name, `{{type: StopAfter, epochs: 100}}`; in Python it is imported from `hookloop.hooks`.

Every hook has, in addition to its own parameters: `name` (unique in a run), `priority`
(0..100 or a name; the lower acts first), `every` (`"50 iters"`, `"2 epochs"`, `"10 min"`) and
`on_error` (`raise` ends the run, `disable` warns once and continues without the hook).

{toc}

{groups}
"""

GROUP = """\
## {purpose}

{about}

{entries}"""

HOOK = """\
### {name}

{duty}

{parameters}{facts}

{config}

```python
{example}
```"""


def page() -> str:
    """Write the page of all hooks."""
    groups = table()
    rows = [
        f"| [{group['purpose']}](#{_anchor(group['purpose'])}) | "
        f"{' · '.join(f'[{name}](#{name.lower()})' for name in group['hooks'])} |"
        for group in groups
    ]
    return PAGE.format(
        count=len(hookloop.hooks.__all__),
        toc="\n".join(["| purpose | hooks |", "|---|---|", *rows]),
        groups="\n\n".join(_group(group) for group in groups),
    )


def table() -> list[dict[str, Any]]:
    """Return the groups of hook_table.yaml, in which every hook has to stand once."""
    groups: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    placed = [name for group in groups for name in group["hooks"]]
    for name in {*placed, *hookloop.hooks.__all__}:
        if placed.count(name) != 1 or name not in hookloop.hooks.__all__:
            raise SystemExit(
                f"{name} stands {placed.count(name)} times in {TABLE.name}: write each hook "
                "under one purpose, with a line of a config."
            )
    return groups


def _group(group: dict[str, Any]) -> str:
    entries = [_entry(name, config) for name, config in group["hooks"].items()]
    about = group["about"]
    return GROUP.format(purpose=group["purpose"], about=about, entries="\n\n".join(entries))


def _entry(name: str, config: str) -> str:
    kind: type[Hook] = getattr(hookloop.hooks, name)
    written = sections(kind)
    return HOOK.format(
        name=name,
        duty=in_markdown(written["duty"].strip()),
        parameters=_parameters(kind),
        facts=_facts(kind),
        config=_config(name, config),
        example=dedent(written["Example"]).strip(),
    )


def _config(name: str, config: str) -> str:
    """Show the line of a config, under the key where the hook belongs."""
    if not config.startswith("{"):
        return f"In a config: {config}."
    given = config[1:-1]
    hook = f"{{type: {name}, {given}}}" if given else name
    default = next((key for key, kind in KNOWN_HOOKS.items() if kind.__name__ == name), None)
    lines = f"default_hooks:\n  {default}: {hook}" if default else f"hooks:\n  - {hook}"
    return f"```yaml\n{lines}\n```"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\s-]", "", heading).lower().replace(" ", "-")


def _parameters(kind: type[Hook]) -> str:
    given = inspect.signature(kind).parameters
    if not given:
        return ""
    said = meanings(kind)
    rows = []
    for name, parameter in given.items():
        if name not in said:
            raise SystemExit(f"{kind.__name__}: describe the parameter '{name}' under 'Args:'.")
        default = parameter.default
        shown = "required" if default is inspect.Parameter.empty else f"`{default!r}`"
        rows.append(f"| `{name}` | {_type(parameter)} | {shown} | {said[name]} |")
    return "\n".join(["| parameter | type | default | |", "|---|---|---|---|", *rows]) + "\n\n"


def _type(parameter: inspect.Parameter) -> str:
    return f"`{parameter.annotation}`".replace("|", "\\|")


def _facts(kind: type[Hook]) -> str:
    acts = [name for name in PointTable() if getattr(kind, name) is not getattr(Hook, name)]
    facts = [f"Acts at {', '.join(f'`{name}`' for name in acts)}."]
    for attribute in ("reads", "writes"):
        names = getattr(kind, attribute)
        if names:
            facts.append(f"{attribute.capitalize()} {', '.join(f'`{name}`' for name in names)}.")
        elif re.search(rf"\bself\.{attribute}\b", inspect.getsource(kind)):
            facts.append(f"{attribute.capitalize()} what its parameters name.")
    priority = Priority.parse(kind.priority)
    names_of = {int(member): f"{member.name} ({member})" for member in Priority}
    if priority != Priority.NORMAL:
        facts.append(f"Priority {names_of.get(priority, priority)}.")
    if kind.on_error == "disable":
        facts.append("Switched off when it fails.")
    return " ".join(facts)
