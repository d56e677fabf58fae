"""``hookloop blame``: which samples of an iteration its loss comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.look.completing import complete_run
from hookloop.cli.shared.arguments import aliases
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.shared.table import show_table
from hookloop.runs.shown import make_safe_line

if TYPE_CHECKING:
    from hookloop.short_runs.blame import Blame, SampleBlame

WIDE = 40
"""The most characters of a text in the table."""


@click.command("blame", short_help="Show which samples of an iteration its loss comes from.")
@aliases
@click.argument("run", type=click.Path(path_type=Path), shell_complete=complete_run)
@click.option("--iter", "at", type=click.IntRange(min=1), required=True, help="The iteration.")
@click.option(
    "--before",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Compare with so many iterations before it.",
)
@click.option("--no-gradients", is_flag=True, help="Leave out the gradients, which take longest.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Show the N worst.",
)
@click.option(
    "--pictures", type=click.Path(path_type=Path), metavar="DIR", help="Write their images here."
)
@click.option("--anyway", is_flag=True, help="Repeat what cannot be exact.")
@reporting
def command(
    run: Path,
    at: int,
    before: int,
    no_gradients: bool,
    most: int,
    pictures: Path | None,
    anyway: bool,
) -> int:
    """Show which samples of an iteration of RUN its loss comes from, the worst first.

    The iteration is repeated bit for bit from the nearest checkpoint before it. Per sample there
    are the loss by rows of the real output, the loss alone in evaluation mode, and the norm of the
    gradient, each as many times the median of the iterations before. What is approximate is marked
    with ~. The config of RUN is code: what it names is imported and built.
    """
    from hookloop.config.blaming import blame_and_replay

    found, replayed = blame_and_replay(
        run, at, before=before, gradients=not no_gradients, anyway=anyway, tell=print_text
    )
    worst = found.samples[:most]
    files = _write(worst, pictures) if pictures is not None else {}
    different = replayed.difference
    set_result(
        {
            "command": "blame",
            "runs": [str(run)],
            "iters": [at, at],
            "exact": not replayed.why_not and different is None,
            "why_not": [*replayed.why_not, *found.why_not],
            "seconds": {"predicted": replayed.predicted, "taken": replayed.seconds},
            "samples": [_record(one, files) for one in found.samples],
            "by": found.by,
            "typical": dict(found.typical),
            "before": list(found.before),
        }
    )
    _show(found, worst)
    for reason in [*replayed.why_not, *found.why_not]:
        print_text(f"{reason}.")
    for file in files.values():
        print_text(f"written: {file}")
    return 0


def _show(found: Blame, worst: Sequence[SampleBlame]) -> None:
    several = {
        "microbatch": len({one.microbatch for one in found.samples}) > 1,
        "update": len({one.update for one in found.samples}) > 1,
        "index": any(one.index is not None for one in worst),
        "id": any(one.id is not None for one in worst),
        "target": any(one.target is not None for one in worst),
        "gradient": any(one.gradient is not None for one in worst),
        "text": any(one.text is not None for one in worst),
    }
    numbers = ("loss", "alone", "gradient")
    names = ("place", "microbatch", "update", "index", "id", "target", *numbers, "text")
    shown = [name for name in names if several.get(name, True)]
    rows = [[_cell(found, one, name) for name in shown] for one in worst]
    show_table(shown, rows, wide=("text", "id"))
    if found.typical:
        medians = ", ".join(f"{name} {value:.4g}" for name, value in found.typical.items())
        first, last = found.before[0], found.before[-1]
        print_text(f"\nmedian of iterations {first} to {last}: {medians}")


def _cell(found: Blame, one: SampleBlame, name: str) -> str:
    value = getattr(one, name)
    if value is None:
        return "-"
    if name in ("loss", "alone", "gradient"):
        usual = found.typical.get(name)
        times = f" ({value / usual:.1f}x)" if usual else ""
        mark = "~" if name == "loss" and not one.exact else ""
        return f"{mark}{value:.4g}{times}"
    if name == "target":
        return f"{value:g}"
    return make_safe_line(str(value), WIDE)


def _record(one: SampleBlame, files: dict[int, str]) -> dict[str, object]:
    names = ("place", "microbatch", "update", "index", "id", "target", "loss", "alone")
    kept = {name: getattr(one, name) for name in (*names, "gradient", "exact", "text")}
    return {**kept, "picture": files.get(id(one))}


def _write(worst: Sequence[SampleBlame], folder: Path) -> dict[int, str]:
    """Write the images of samples, as far as there are any; return the files."""
    from hookloop.writers.pixels import encode_png, to_pixels

    files = {}
    for number, one in enumerate(worst, 1):
        if one.picture is None:
            continue
        image = one.picture - one.picture.min()
        pixels = to_pixels(image / image.max().clamp(min=1e-12))
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{number:02}_iter_{one.iter}_place_{one.place}.png"
        file.write_bytes(encode_png(pixels))
        files[id(one)] = str(file)
    return files
