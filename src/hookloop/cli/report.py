"""How a failure is told: short, with the place; everything with ``--traceback``."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from traceback import FrameSummary
from typing import ParamSpec

import click

from hookloop.errors import ConfigError, HookloopError
from hookloop.runs.run_log import RunLog
from hookloop.runs.shown import shown

P = ParamSpec("P")

USER_ERROR = 2
FAILED = 1
MOST = 1000


def reporting(function: Callable[P, int]) -> Callable[..., None]:
    """Give a verb the option ``--traceback``, and exit with what it returns or raises."""

    @click.option("--traceback", "show_all", is_flag=True, help="Show all of an error.")
    @functools.wraps(function)
    def run(show_all: bool, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with closing(RunLog()):  # A run that is trained takes over what was reported before.
                code = function(*args, **kwargs)
        except (click.ClickException, click.Abort):
            raise
        except HookloopError as error:
            code = _report_user_error(error, show_all=show_all)
        except Exception as error:  # noqa: BLE001 - told below, with the way to see all of it
            code = _report_failure(error, show_all=show_all)
        sys.exit(code)

    return run


def say(text: str, *, err: bool = False) -> None:
    """Print a text in which codes for the terminal are written out: it may quote any file."""
    click.echo(shown(text), err=err)


def say_error(message: str) -> None:
    """Print one error in red, where colours are wanted."""
    label = click.style("error:", fg="red", bold=True)
    color = False if "NO_COLOR" in os.environ else None
    click.echo(f"{label} {shown(message)}", err=True, color=color)


def _report_user_error(error: HookloopError, *, show_all: bool) -> int:
    if show_all:
        say("".join(traceback.format_exception(error)).rstrip(), err=True)
        return USER_ERROR
    problems = error.problems if isinstance(error, ConfigError) else (error,)
    for problem in problems:
        say_error(str(problem))
    _show_notes(error)
    if _is_from_user_code(error.__cause__):
        say("  --traceback shows where it comes from", err=True)
    return USER_ERROR


def _report_failure(error: Exception, *, show_all: bool) -> int:
    if show_all:
        say("".join(traceback.format_exception(error)).rstrip(), err=True)
        return FAILED
    say_error(f"{type(error).__name__}: {_shortened(str(error))}".removesuffix(": "))
    frame = place_in_user_code(error)
    if frame is not None:
        say(f"  in {_short(frame.filename)}:{frame.lineno}, {frame.name}", err=True)
        if frame.line:
            say(f"    {frame.line}", err=True)
    _show_notes(error)
    say("  --traceback shows all", err=True)
    return FAILED


def _show_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", []):
        say(f"  {note}", err=True)


def place_in_user_code(error: BaseException) -> FrameSummary | None:
    """Find the innermost line of the user's own code, or else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_library(frame.filename)]
    return own[-1] if own else (frames[-1] if frames else None)


def _is_from_user_code(error: BaseException | None) -> bool:
    if isinstance(error, ExceptionGroup):
        return any(_is_from_user_code(one) for one in error.exceptions)
    if error is None or isinstance(error, HookloopError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return any(not _is_library(frame.filename) for frame in frames)


def _is_library(filename: str) -> bool:
    if filename.startswith("<"):
        return True
    paths = sysconfig.get_paths()
    homes = [paths["stdlib"], paths["purelib"], paths["platlib"], str(Path(__file__).parents[1])]
    return any(Path(filename).is_relative_to(home) for home in homes)


def _shortened(text: str) -> str:
    """Cut what some exceptions say at length, such as a whole tensor."""
    return (
        text if len(text) <= MOST else f"{text[:MOST]} ... ({len(text) - MOST:,} characters more)"
    )


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
