"""The page of mount points."""

from __future__ import annotations

from textwrap import dedent

from hookloop.engine import points
from hookloop.engine.points import POINTS, Point
from page_parts import filled

PAGE = """\
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

## What is there

What a hook has found in the run at each point: `yes` is that of the present microbatch, `last` that
of the one before, which the engine has not replaced yet. Gradients are those that the model holds.

| point | `run.phase` | `run.batch` | `run.output` | `run.loss` | gradients |
|---|---|---|---|---|---|
{filled}

## Points of your own

A project declares its own points and fires them; an undeclared one is an error. Any hook with a
method of that name is called:

```python
from hookloop import Hook, Point, Setup
from hookloop.testing import tiny_trainer


class Sample(Hook):
    def after_epoch(self, run):
        run.fire("after_sample", f"after epoch {{run.progress.epoch}}")  # a step can fire it, too


class Print(Hook):
    def after_sample(self, run, text):
        print(text)


points = [Point("after_sample", args=("text",))]
tiny_trainer(Sample(), Print(), setup=Setup(points=points)).train()  # or Trainer(..., setup=...)
```
"""


def timeline() -> str:
    """Return the drawing that stands in the docstring of the table."""
    assert points.__doc__ is not None
    drawing = points.__doc__.partition("::\n\n")[2].partition("\n\n")[0]
    return dedent(drawing)


def page() -> str:
    """Write the page of all mount points."""
    drawn = timeline()
    elsewhere = [f"`{point.name}`" for point in POINTS if point.name not in drawn.split()]
    return PAGE.format(
        timeline=drawn,
        elsewhere=", ".join(elsewhere),
        count=len(POINTS),
        rows="\n".join(_row(point) for point in POINTS),
        filled=filled.rows(),
    )


def _row(point: Point) -> str:
    args = f"({', '.join(point.args)})" if point.args else ""
    return f"| `{point.name}{args}` | {point.doc} | {point.clock or ''} |"
