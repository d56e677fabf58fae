"""``hookloop find-lr``: suggest a learning rate from a short training with a rising one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.train.check import build_without_run
from hookloop.cli.train.launch import Launch, ranks_option
from hookloop.every import count_of
from hookloop.short_runs.scratch import scratch_directory

if TYPE_CHECKING:
    from hookloop.short_runs.find_lr import RateSearch
    from hookloop.trainer.trainer import Trainer


@click.command("find-lr", short_help="Suggest a learning rate.")
@config_and_overrides
@click.option(
    "--from", "first", type=float, default=1e-7, show_default=True, help="The first rate."
)
@click.option("--to", "last", type=float, default=10.0, show_default=True, help="The last rate.")
@click.option(
    "--iters",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many iterations to train, at most.",
)
@click.option("--png", type=click.Path(path_type=Path), help="Draw the curve into this file.")
@ranks_option
@reporting
def command(
    config: Path,
    overrides: tuple[str, ...],
    first: float,
    last: float,
    iters: int,
    png: Path | None,
    ranks: int | None,
) -> int:
    """Train CONFIG with a learning rate that rises in each iteration, and suggest one.

    No hook acts, and nothing is written except the picture. With several parameter groups or
    optimizers, all rates rise together and keep their ratios.
    """
    from hookloop.config.load import load

    launch = Launch(ranks)
    launch.check()
    loaded = load(config, overrides)
    from hookloop.hooks.showing._figures import require_plots
    from hookloop.short_runs.find_lr import find_lr

    if png is not None:
        require_plots("find-lr --png")  # Before the search, not after it.
    if ranks is not None:
        drawn = ["--png", str(png)] if png is not None else []
        limits = ["--from", str(first), "--to", str(last), "--iters", str(iters)]
        with launch.on_ranks(loaded) as run_on_ranks:
            return run_on_ranks(["find-lr", str(config), *overrides, *limits, *drawn])
    with scratch_directory("find-lr") as scratch:
        trainer = build_without_run(loaded, scratch)
        search = find_lr(trainer, first=first, last=last, iters=iters)
    if not trainer.run.world.is_main:
        return 0
    if png is not None:
        search.save_png(png)
    _show(search, _names_of_cycles(trainer))
    return 0


def _names_of_cycles(trainer: Trainer) -> list[str]:
    """Name the schedules that have a rate of their own, whatever that of the optimizer is."""
    kinds = [type(schedule.scheduler).__name__ for schedule in trainer.run.schedules.values()]
    return [kind for kind in kinds if kind in ("OneCycleLR", "CyclicLR")]


def _options(again: Mapping[str, float]) -> str:
    names = {"first": "--from", "last": "--to", "iters": "--iters"}
    return " ".join(f"{names[name]} {value:g}" for name, value in again.items())


def _show(search: RateSearch, cycles: list[str]) -> None:
    names = ("suggestion", "overrides", "factor", "ended", "rates", "losses", "smoothed", "again")
    set_result({name: getattr(search, name) for name in names})
    if search.rates:
        print_text("training loss, smoothed, over the learning rate")
        print_text(draw_curve(search.rates, search.smoothed, mark=search.suggestion))
    count = len(search.rates)
    print_text(f"{count_of(count, 'iteration')}; {search.ended}.")
    if search.suggestion is None or search.factor is None:
        print_text(f"No suggestion: the loss did not fall. Try {_options(search.again)}.")
        return
    words = " ".join(f"{key}={value:g}" for key, value in search.overrides.items())
    print_text(f"The loss falls fastest at {search.suggestion:.2g}. Suggested: {words}")
    if search.again:
        print_text(f"It still falls at the last rate. To see more, try {_options(search.again)}.")
    if cycles:
        print_text(f"The schedule {cycles[0]} sets the rate itself: give it this as max_lr.")
    if search.has_groups:
        print_text(f"Groups with rates of their own: multiply them by {search.factor:.3g}, too.")


def draw_curve(
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    mark: float | None = None,
    width: int = 64,
    height: int = 14,
) -> str:
    """Draw values over a logarithmic axis.

    Args:
        xs: Where the values are; above 0, rising.
        ys: The values; those that are not finite are left out.
        mark: A place on the axis to mark with a column of dots.
        width: Columns of the drawing.
        height: Lines of it.

    >>> print(draw_curve([1, 10, 100], [2.0, 1.0, 2.0], width=9, height=3))
         2 |*       *
           |
         1 |    *
           +---------
            1     100
    """
    points = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]
    if not points:
        return "There is nothing to draw."
    low, high = min(y for _, y in points), max(y for _, y in points)
    grid = [[" "] * width for _ in range(height)]

    def column(x: float) -> int:
        return _place(math.log10(x), math.log10(xs[0]), math.log10(xs[-1]), width)

    if mark is not None:
        for line in grid:
            line[column(mark)] = "."
    for x, y in points:
        grid[height - 1 - _place(y, low, high, height)][column(x)] = "*"
    labels = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    left = max(6, *map(len, labels.values()))
    lines = [
        f"{labels.get(number, ''):>{left}} |{''.join(line)}".rstrip()
        for number, line in enumerate(grid)
    ]
    first, last = f"{xs[0]:.3g}", f"{xs[-1]:.3g}"
    axis = f"{' ' * left}  {first}{last:>{width - len(first)}}"
    return "\n".join([*lines, f"{' ' * left} +{'-' * width}", axis])


def _place(value: float, low: float, high: float, count: int) -> int:
    """Return the cell of a value, from 0 to count - 1."""
    if not high > low:
        return 0
    return max(0, min(count - 1, round((value - low) / (high - low) * (count - 1))))
