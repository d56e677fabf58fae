"""``hookloop diff``: how two runs differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.cli.shared.table import show_table
from hookloop.errors import HookloopError
from hookloop.runs.shown import make_safe_line

if TYPE_CHECKING:
    from hookloop.runs.layout import RunDir

WIDE = 60
"""The most characters of a value that are shown; --json has all of it."""

DIFFERENT = 1


@click.command("diff", short_help="Show how two runs differ.")
@click.argument("first", type=click.Path(path_type=Path), metavar="A")
@click.argument("second", type=click.Path(path_type=Path), metavar="B")
@click.option(
    "--no-data", is_flag=True, help="Do not compare the data, for which checkpoints are read."
)
@reporting
def command(first: Path, second: Path, no_data: bool) -> int:
    """Show how the runs A and B differ.

    It compares config, environment, source, data, and the metrics at equal iterations. The exit
    code is 0 if they are equal, 1 if not, and 2 if they cannot be compared.
    """
    from hookloop.runs.differences import compare_runs, differing, is_equal
    from hookloop.runs.tags import open_run

    runs = [open_run(path) for path in (first, second)]
    try:
        found = compare_runs(*runs)
    except (OSError, ValueError) as error:
        raise HookloopError(f"The runs cannot be compared: {error}") from error
    if not no_data:
        found["data"] = differing(*map(_data_of, runs))
    equal = is_equal(found)
    set_result({"equal": equal, "runs": [str(first), str(second)], **found})
    for name, section in found.items():
        if name == "relatives" and isinstance(section, Mapping):
            print_text(f"They are one run until iteration {section['from']}.")
        elif name != "metrics":
            _show_section(name, section, (str(first), str(second)))
    _show_metrics(found["metrics"], (str(first), str(second)))
    if equal:
        print_text("There is no difference.")
    return 0 if equal else DIFFERENT


def _data_of(run: RunDir) -> dict[str, object]:
    """Return what the newest checkpoint knows of the training data; {} without one."""
    # A look first, because opening the store imports torch.
    if run.last_checkpoint is None or not run.last_checkpoint.exists():
        return {}
    from hookloop.checkpoint.store.store import CheckpointStore
    from hookloop.runs.config_values import flatten

    newest = CheckpointStore(run.path).newest()
    data = newest[1].get("data") if newest is not None else None
    if not isinstance(data, Mapping):
        return {}
    kept = {key: data.get(key) for key in ("measures", "passes", "position", "samples")}
    return flatten({key: value for key, value in kept.items() if value is not None})


def _show_section(name: str, section: object, labels: tuple[str, str]) -> None:
    if isinstance(section, Mapping) and section:
        print_text(f"{name}:")
        rows = [(f"  {key}", *(_show(value) for value in pair)) for key, pair in section.items()]
        show_table(("  key", *labels), rows, wide=labels)
        print_text("")


def _show_metrics(found: object, labels: tuple[str, str]) -> None:
    assert isinstance(found, Mapping)
    first = found["first_difference"]
    for label, names in found["only"].items():
        print_text(f"metrics of the {label} run alone: {', '.join(names)}")
    if first is None:
        return
    values = " and ".join(_show(value) for value in first["values"])
    where = f"{first['metric']} in iteration {first['iter']}"
    print_text(f"metrics: the first difference is {where}: {values}.")
    rows = [
        (
            f"  {name}",
            str(one["last"]["iter"]),
            *(_show(value) for value in one["last"]["values"]),
            *(_show(value) for value in one["best"]["values"]),
            f"{one['farthest']['difference']:.3g} in {one['farthest']['iter']}",
        )
        for name, one in found["metrics"].items()
        if one["farthest"]
    ]
    columns = ("  metric", "iter", *labels, "best of A", "best of B", "farthest apart")
    show_table(columns, rows, wide=labels)


def _show(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.8g}" if isinstance(value, float) else str(value)
    return make_safe_line(text, WIDE)
