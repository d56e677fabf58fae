"""Write the generated pages of docs/ from the code: ``python scripts/make_docs.py``.

A test holds the committed pages against what this writes, so they cannot drift.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import hookloop.hooks
from hookloop.core import points
from hookloop.core.hook import Hook, Priority
from hookloop.core.points import POINTS, Point, PointTable

DOCS = Path(__file__).parent.parent / "docs"

MOUNT_POINTS = """\
# Mount points

A mount point is a named place in the run where hooks act. A hook is an object whose methods are
named after mount points; a method that looks like one but is not is rejected before training
starts, with the nearest right name. `hookloop points` prints this table.

```text
{timeline}
```

What is indented fires as often as what encloses it. `before_forward`, `after_forward` and
`after_loss` fire in every phase, which is in `run.phase`; in training they and `after_backward`
fire for each microbatch. A prediction has no loss, and so no `after_loss`. A validation may also
come in the middle of an epoch, when it goes by iterations.

A resumed run fires `before_run` and `before_train` again, and `before_epoch` and
`before_train_epoch` too if it continues in the middle of an epoch: hooks set up there what no
checkpoint holds. They draw the same random numbers as the first time, and a metric that they put
there is recorded once. A hook that counts epochs looks at `run.progress.iter_in_epoch`, which is 0
when an epoch really begins.

`before_forward` is the place to replace `run.batch`: to mix, resize or choose samples. It fires for
each microbatch, and where several optimizers take turns, for each of them with the batch as it was
read. What it leaves there is what the model, the loss, the metrics and later hooks get, and what
counts as the batch's samples. [MixUp](hooks.md#mixup), [CutMix](hooks.md#cutmix),
[ResizeInputs](hooks.md#resizeinputs) and [WarmUpLength](hooks.md#warmuplength) are such hooks.

Not in the drawing, because they come on request: {elsewhere}.

## All {count}

A hook's method takes the run and what stands in parentheses, and returns nothing. The last column
is the unit of `every` that can limit it there, in addition to time: `every = "50 iters"`.

| point | when | counts |
|---|---|---|
{rows}

## Points of your own

A project declares its own points and fires them; an undeclared one is an error. Any hook with a
method of that name is called:

```python
from hookloop import Hook, Point
from hookloop.testing import tiny_trainer


class Sample(Hook):
    def after_epoch(self, run):
        run.fire("after_sample", f"after epoch {{run.progress.epoch}}")  # a step can fire it, too


class Print(Hook):
    def after_sample(self, run, text):
        print(text)


points = [Point("after_sample", args=("text",))]
tiny_trainer(Sample(), Print(), points=points).train()  # or Trainer(..., points=points)
```
"""

HOOKS = """\
# Hooks

The {count} hooks that come with hookloop, in the order of the alphabet. In a config each is written
by its name, `{{type: StopAfter, epochs: 100}}`; in Python it is imported from `hookloop.hooks`.

Every hook has, in addition to its own parameters: `name` (unique in a run), `priority`
(0..100 or a name; the lower acts first), `every` (`"50 iters"`, `"2 epochs"`, `"10 min"`) and
`on_error` (`raise` ends the run, `disable` warns once and continues without the hook).

{toc}

{entries}
"""

BEYOND = "## Beyond the five systems\n"
BEYOND_INTRO = """
Hooks for which none of the five systems has a capability. This list is generated: a new hook
appears in it unless a row above names it.
"""

HOOK = """\
## {name}

{duty}

{parameters}{facts}

```python
{example}
```"""


def timeline() -> str:
    """Return the drawing that stands in the docstring of the table."""
    assert points.__doc__ is not None
    drawing = points.__doc__.partition("::\n\n")[2].partition("\n\n")[0]
    return dedent(drawing)


def mount_points() -> str:
    """Write the page of all mount points."""
    drawn = timeline()
    elsewhere = [f"`{point.name}`" for point in POINTS if point.name not in drawn.split()]
    return MOUNT_POINTS.format(
        timeline=drawn,
        elsewhere=", ".join(elsewhere),
        count=len(POINTS),
        rows="\n".join(_row(point) for point in POINTS),
    )


def _row(point: Point) -> str:
    args = f"({', '.join(point.args)})" if point.args else ""
    return f"| `{point.name}{args}` | {point.doc} | {point.clock or ''} |"


def hooks() -> str:
    """Write the page of all hooks."""
    kinds = {name: getattr(hookloop.hooks, name) for name in sorted(hookloop.hooks.__all__)}
    toc = [f"[{name}](#{name.lower()})" for name in kinds]
    entries = [_entry(name, kind) for name, kind in kinds.items()]
    return HOOKS.format(count=len(kinds), toc=" · ".join(toc), entries="\n\n".join(entries))


def _entry(name: str, kind: type[Hook]) -> str:
    sections = _sections(inspect.getdoc(kind) or "")
    return HOOK.format(
        name=name,
        duty=sections["duty"].strip().replace("``", "`"),
        parameters=_parameters(kind, sections.get("Args", "")),
        facts=_facts(kind),
        example=dedent(sections["Example"]).strip(),
    )


def _sections(doc: str) -> dict[str, str]:
    """Split a docstring into its duty and its named sections."""
    parts = re.split(r"^(\w+):\n", doc, flags=re.MULTILINE)
    return {"duty": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _parameters(kind: type[Hook], described: str) -> str:
    given = inspect.signature(kind).parameters
    if not given:
        return ""
    entries = re.split(r"^(\**\w+): ", dedent(described), flags=re.MULTILINE)[1:]
    meanings = dict(zip(entries[::2], entries[1::2], strict=True))
    rows = []
    for name, parameter in given.items():
        if name not in meanings:
            raise SystemExit(f"{kind.__name__}: describe the parameter '{name}' under 'Args:'.")
        text = " ".join(meanings[name].split()).replace("``", "`").replace("|", "\\|")
        default = parameter.default
        shown = "required" if default is inspect.Parameter.empty else f"`{default!r}`"
        rows.append(f"| `{name}` | {shown} | {text} |")
    return "\n".join(["| parameter | default | |", "|---|---|---|", *rows]) + "\n\n"


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


def capabilities() -> str:
    """Return the page of capabilities with its last section rewritten.

    The table is written by hand, and tests/test_capabilities.py checks it.
    """
    page = (DOCS / "capabilities.md").read_text(encoding="utf-8")
    table = page.partition(BEYOND)[0]
    beyond = [
        f"- [`{name}`](hooks.md#{name.lower()}): {_duty(getattr(hookloop.hooks, name))}"
        for name in sorted(hookloop.hooks.__all__)
        if not re.search(rf"`{name}\b", table)
    ]
    return f"{table}{BEYOND}{BEYOND_INTRO}\n" + "\n".join(beyond) + "\n"


def _duty(kind: type[Hook]) -> str:
    """Return the first line of a hook's docstring."""
    return (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", "`")


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every generated page with its content."""
    yield DOCS / "mount-points.md", mount_points()
    yield DOCS / "hooks.md", hooks()
    yield DOCS / "capabilities.md", capabilities()


if __name__ == "__main__":
    for path, content in pages():
        path.write_text(content, encoding="utf-8")
        print(f"wrote docs/{path.name}")
