"""Report failures: short, with the line; in full with ``--traceback``."""

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

from hookloop.cli.shared.output import Output, current_output
from hookloop.errors import ConfigError, HookloopError
from hookloop.parallel.failure import PeerFailed
from hookloop.parallel.launched import report_end, report_failure
from hookloop.runs.run_log import RunLog
from hookloop.runs.shown import make_safe
from hookloop.short_runs.scratch import Terminated

P = ParamSpec("P")

USER_ERROR = 2
FAILED = 1
SIGNALLED = 128
"""The exit codes of interrupted runs are above it."""
MOST = 1000
"""How many characters of a message are shown."""


def reporting(function: Callable[P, int]) -> Callable[..., None]:
    """Add the option ``--traceback`` to a verb, and exit with the code for its result or error."""

    @click.option(
        "--traceback", "show_all", is_flag=True, help="Show the full traceback of an error."
    )
    @functools.wraps(function)
    def run(show_all: bool, *args: P.args, **kwargs: P.kwargs) -> None:
        output = current_output()
        try:
            # The log of a training takes over what was reported before.
            with closing(RunLog()), output.printing():
                code = report_end(function(*args, **kwargs))
        # An Abort and a KeyboardInterrupt are reported by `main`.
        except click.ClickException as error:
            error.show()
            code = error.exit_code
            output.fail(error.format_message())
        except HookloopError as error:
            code = USER_ERROR
            _fail(output, error)
            if not report_failure(error, code):
                _report_user_error(error, show_all=show_all)
        except Exception as error:  # noqa: BLE001 - reported, with a hint at --traceback
            code = FAILED
            _fail(output, error)
            if not report_failure(error, code):
                _report_failure(error, show_all=show_all)
        # Another rank failed, and shows why. The launcher wants to know all the same.
        except PeerFailed as failure:
            code = FAILED
            output.fail(str(failure).partition("\n")[0])
            report_failure(failure, code)
        # An interrupted run ends with a SystemExit that has its exit code.
        except SystemExit as end:
            _report_signal(output, end)
            if not isinstance(end.code, int) or end.code < SIGNALLED:
                output.finish(end.code if isinstance(end.code, int) else int(bool(end.code)))
                raise
            code = report_end(end.code)
        output.finish(code)
        sys.exit(code)

    return run


def print_text(text: str, *, err: bool = False) -> None:
    """Print a text with terminal codes escaped, because it may quote any file."""
    if not (err and current_output().is_quiet):
        click.echo(make_safe(text), err=err)


def print_error(message: str) -> None:
    """Print an error, in red if colours are wanted."""
    label = click.style("error:", fg="red", bold=True)
    # None lets click decide by the terminal; NO_COLOR is a convention that click does not know.
    color = False if "NO_COLOR" in os.environ else None
    click.echo(f"{label} {make_safe(message)}", err=True, color=color)


def _fail(output: Output, error: Exception) -> None:
    """Add an error to the JSON result."""
    if not isinstance(error, HookloopError):
        output.fail(_shortened(f"{type(error).__name__}: {error}"))
        return
    problems = error.problems if isinstance(error, ConfigError) else (error,)
    output.fail(str(error), problems=[str(problem) for problem in problems])


def _report_signal(output: Output, end: SystemExit) -> None:
    if isinstance(end, Terminated):  # A training reports the signals that end it itself.
        output.fail("ended by SIGTERM")
        print_error("ended by SIGTERM.")


def _report_user_error(error: HookloopError, *, show_all: bool) -> None:
    if show_all:
        print_text("".join(traceback.format_exception(error)).rstrip(), err=True)
        return
    problems = error.problems if isinstance(error, ConfigError) else (error,)
    for problem in problems:
        print_error(str(problem))
    _show_notes(error)
    if _is_from_user_code(error.__cause__):
        print_text("  --traceback shows where it comes from", err=True)


def _report_failure(error: Exception, *, show_all: bool) -> None:
    if show_all:
        print_text("".join(traceback.format_exception(error)).rstrip(), err=True)
        return
    print_error(f"{type(error).__name__}: {_shortened(str(error))}".removesuffix(": "))
    frame = frame_in_user_code(error)
    if frame is not None:
        print_text(f"  in {_short(frame.filename)}:{frame.lineno}, {frame.name}", err=True)
        if frame.line:
            print_text(f"    {frame.line}", err=True)
    _show_notes(error)
    print_text("  --traceback shows all", err=True)


def _show_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", []):
        print_text(f"  {note}", err=True)


def frame_in_user_code(error: BaseException) -> FrameSummary | None:
    """Return the innermost frame of the user's own code, or else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_library(frame.filename)]
    return own[-1] if own else (frames[-1] if frames else None)


def _is_from_user_code(error: BaseException | None) -> bool:
    # A config raises one if several of the modules that it names cannot be imported.
    if isinstance(error, ExceptionGroup):
        return any(_is_from_user_code(inner) for inner in error.exceptions)
    if error is None or isinstance(error, HookloopError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return any(not _is_library(frame.filename) for frame in frames)


def _is_library(filename: str) -> bool:
    if filename.startswith("<"):  # Frozen or generated code has no file.
        return True
    paths = sysconfig.get_paths()
    # Our own directory too, because a checkout may be installed outside of site-packages.
    homes = [paths["stdlib"], paths["purelib"], paths["platlib"], str(Path(__file__).parents[2])]
    return any(Path(filename).is_relative_to(home) for home in homes)


def _shortened(text: str) -> str:
    """Cut a message that is too long, such as one with a whole tensor."""
    return (
        text if len(text) <= MOST else f"{text[:MOST]} ... ({len(text) - MOST:,} characters more)"
    )


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
