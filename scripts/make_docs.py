"""Write the generated pages of docs/ from the code: ``python scripts/make_docs.py``.

A test holds the committed pages against what this writes, so they cannot drift.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from hookloop.core import points
from hookloop.core.points import POINTS, Point

DOCS = Path(__file__).parent.parent / "docs"

MOUNT_POINTS = """\
# Mount points

A mount point is a named place in the run where hooks act. A hook is an object whose methods are
named after mount points; a method that looks like one and is none is refused before training
starts, with the nearest right name. `hookloop points` prints this table.

```
{timeline}
```

What is indented fires as often as what encloses it. `after_forward` and `after_loss` fire in every
phase, and `run.phase` tells which; in training they and `after_backward` fire for each microbatch.
A validation may also come in the middle of an epoch, when it goes by iterations.

Not in the drawing, because they come on request: {elsewhere}.

## All {count}

A hook's method takes the run and what stands in parentheses, and returns nothing. The last column
tells which unit of `every` can limit it there, besides time: `every = "50 iters"`.

| point | when | counts |
|---|---|---|
{rows}

## Points of your own

A project declares its own points and fires them; an undeclared one is an error. Any hook with a
method of that name is called:

```python
trainer = Trainer(..., points=[Point("after_sample", args=("text",))])

run.fire("after_sample", text)  # inside a hook or a step
```
"""


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


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every generated page with its content."""
    yield DOCS / "mount-points.md", mount_points()


if __name__ == "__main__":
    for path, content in pages():
        path.write_text(content, encoding="utf-8")
        print(f"wrote docs/{path.name}")
