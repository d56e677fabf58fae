"""``hookloop ask``: ask a live run to save, validate, stop or change a setting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_error, print_text, reporting
from hookloop.runs.records import to_number

if TYPE_CHECKING:
    from hookloop.runs.asking import Deed


@click.command("ask", short_help="Ask a live run to save, validate, stop or change a setting.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("what", type=click.Choice(["save", "validate", "stop", "set"]))
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the answer.",
)
@reporting
def command(run: Path, what: str, settings: tuple[str, ...], wait: float) -> int:
    """Ask RUN, the directory of a live run, to save, validate, stop or change a setting.

    The run may be on this host or on another that shares the directory. It answers between two
    iterations. The exit code is 1 if it rejects the request or does not answer in time.
    """
    from hookloop.runs.asking import ask

    answer = ask(run, cast("Deed", what), _numbers(what, settings), wait=wait)
    set_result(answer)
    if not answer["done"]:
        print_error(str(answer.get("reason")))
        return 1
    print_text(f"{what}: {_describe(answer)}")
    outlook = answer.get("outlook")
    for text in outlook if isinstance(outlook, list) else ():
        print_text(f"  {text}")
    return 0


def _numbers(what: str, settings: tuple[str, ...]) -> dict[str, float]:
    """Read ``KEY=VALUE``; a value is a number."""
    if bool(settings) != (what == "set"):
        meant = (
            "set needs KEY=VALUE, as in: set optimizer.lr=1e-4"
            if what == "set"
            else (f"{what} takes no settings")
        )
        raise click.UsageError(f"{meant}.")
    numbers: dict[str, float] = {}
    for setting in settings:
        key, _, text = setting.partition("=")
        try:
            value = float(text.replace("_", ""))
            numbers[key] = int(value) if value == int(value) and "." not in text else value
        except (ValueError, OverflowError) as error:
            raise click.BadParameter(
                f"'{setting}' must be KEY=NUMBER, as in optimizer.lr=1e-4. Tuples such as betas, "
                "and intervals, are changed at a resume: ask the run to stop, then hookloop resume "
                "RUN KEY=VALUE --change.",
                param_hint="SETTINGS",
            ) from error
    return numbers


def _describe(answer: dict[str, object]) -> str:
    parts = [f"done after iteration {answer.get('iter')}"]
    if checkpoint := answer.get("checkpoint"):
        parts.append(str(checkpoint))
    changes, metrics = answer.get("changes"), answer.get("metrics")
    if isinstance(changes, list):
        parts += [f"{one.get('key')} {one.get('old')} -> {one.get('new')}" for one in changes]
    if isinstance(metrics, dict):
        parts += [f"{name} {to_number(value):.4g}" for name, value in metrics.items()]
    return "  ".join(parts)
