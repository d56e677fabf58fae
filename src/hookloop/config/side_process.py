"""The process of one side of a bisect: repeats what its file says, and writes blocks of lines.

``python -m hookloop.config.side_process SPEC``; any interpreter that has hookloop can be a side.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from hookloop.errors import HookloopError
from hookloop.runs import environment
from hookloop.runs.config_values import flatten
from hookloop.runs.policy import NOT_SHOWN
from hookloop.short_runs.sides import Side, SideError

if TYPE_CHECKING:
    from hookloop.engine.hook import Hook
    from hookloop.engine.run import Run
    from hookloop.short_runs.replay import Make
    from hookloop.short_runs.route import Line, Route
    from hookloop.update.probe import Line as ProbeLine

Put = Callable[[Mapping[str, object]], object]


class Enough(BaseException):
    """Ends a training after the last iteration that is wanted. No hook and no loop catches it."""


class NoReaderError(BaseException):
    """Ends a side early: its reader wants no more."""


def main(arguments: Sequence[str]) -> int:
    """Run the side that a file describes."""
    spec = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with open(spec["to"], "w", encoding="utf-8") as file:
        put = partial(_write, file)
        try:
            run_side(spec, put)
        except NoReaderError:
            return 0
        except HookloopError as error:
            put({"end": "failed", "reason": str(error)})
        except BaseException as error:  # noqa: BLE001 - the other process reports it
            put(
                {
                    "end": "failed",
                    "reason": f"{type(error).__name__}: {error}",
                    "traceback": traceback.format_exc(),
                }
            )
            return 1
    return 0


def _write(file: IO[str], block: Mapping[str, object]) -> None:
    try:
        file.write(json.dumps(block, separators=(",", ":")) + "\n")
        file.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        raise NoReaderError from error


def run_side(spec: Mapping[str, object], put: Put) -> None:
    """Repeat a side in this process.

    Args:
        spec: The side, with ``first`` and ``last`` iteration, and ``mode``: ``lines``, or
            ``hooks`` with the ``kind`` and ``name`` of which the writers are wanted.
        put: Gets each block.
    """
    import torch

    side = Side.from_spec(spec)
    if alias := cast("Sequence[str]", spec.get("alias") or ()):
        from hookloop import dialects

        dialects.alias(*alias)  # For all of this process, which ends with the side.
    if side.threads is not None and side.threads != torch.get_num_threads():
        torch.set_num_threads(side.threads)
    if side.tree is not None:
        _prefer_tree(side)
    first, last = cast("int", spec["first"]), cast("int | None", spec["last"])
    looking = _looking(spec, first, last, put)
    if side.run is not None:
        _replay(side, first, cast("int", last), looking, put)
    else:
        _train(side, last, looking)
    put({"end": "done"})


def _prefer_tree(side: Side) -> None:
    """Import code of the commit, and none of the working tree."""
    root = cast("str", side.root)
    entries = [side.place(os.path.abspath(one or ".")) for one in sys.path]
    sys.path[:] = [one for one in dict.fromkeys(entries) if one != root]


# --- what is looked at ----------------------------------------------------------------------------


def _looking(spec: Mapping[str, object], first: int, last: int | None, put: Put) -> list[Hook]:
    from hookloop.short_runs.replay import OF_FILES
    from hookloop.update.probe import Firing, HookProbe, Probe

    def is_left_out(hook: Hook) -> bool:
        return isinstance(hook, OF_FILES)

    header = _header_hook(put)
    if spec.get("mode") == "hooks":
        target = (cast("str", spec["kind"]), cast("str", spec["name"]))

        def take_firing(one: Firing) -> None:
            values = (one.before.get(target), one.after.get(target))
            put({"firing": [one.iter, one.point, one.hook, *values]})

        return [
            header,
            HookProbe(take_firing, first=first, last=last or first, leave_out=is_left_out),
        ]
    modules = [0]

    def take(number: int, lines: list[ProbeLine]) -> None:
        if len(sys.modules) != modules[0]:  # What is imported late is a source as well.
            modules[0] = len(sys.modules)
            put({"header": {"code": sources()}})
        put({"iter": number, "lines": lines})
        if spec.get("run") is None and number == last:
            raise Enough

    probe = Probe(take, first=first, last=last, leave_out=is_left_out)
    return [header, *probe.hooks]


def _header_hook(put: Put) -> Hook:
    from hookloop.update.probe import LooksOnly

    class SayWhatItIs(LooksOnly):
        """Says once what the side consists of."""

        name = "side_header"
        is_said = False

        def before_train(self, run: Run) -> None:
            if not self.is_said:
                self.is_said = True
                put({"header": describe_side(run)})

    return SayWhatItIs()


def describe_side(run: Run) -> dict[str, object]:
    """Return what a side consists of, to find out later in what two of them differ."""
    from hookloop.hooks.measuring.record_environment import describe_torch
    from hookloop.runs.records import plain
    from hookloop.trainer.trained_with import describe_part, describe_training

    here = environment.describe_process(run.dir) | describe_torch(run.device)
    config = dict(run.config) or cast("dict[str, object]", plain(describe_training(run)))
    variables = cast("Mapping[str, str]", here["variables"])
    return {
        "config": {
            key: value
            for key, value in flatten(plain(config)).items()  # type: ignore[arg-type]
            if key.partition(".")[0] not in NOT_SHOWN
        },
        "code": sources(),
        "library": flatten(
            {
                "python": here["python"],
                "hookloop": here["hookloop"],
                "torch": here["torch"],
                "packages": here["packages"],
            }
        ),
        "machine": flatten(
            {
                "cpu": here["cpu"],
                "cpu_capability": here.get("cpu_capability"),
                "threads": here.get("threads"),
                "device": str(run.device),
                "gpus": here.get("gpus"),
                "driver": here.get("driver"),
                "variables": {
                    key: value
                    for key, value in variables.items()
                    if not environment.OF_PLACE.fullmatch(key)
                },
            }
        ),
        "hooks": {one.name: plain(describe_part(one)) for one in run.hooks},
    }


def sources() -> dict[str, str]:
    """Return a checksum of each imported file that is no part of Python or of a package."""
    installed = tuple(
        os.path.realpath(sysconfig.get_path(name)) + os.sep
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    )
    own = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep
    found: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or name in ("__main__", "__mp_main__"):
            continue
        path = os.path.realpath(file)
        if path.startswith((*installed, own)) or "site-packages" in path:
            continue
        try:
            with open(path, "rb") as opened:
                found[name] = hashlib.blake2b(opened.read(), digest_size=8).hexdigest()
        except OSError:  # It was deleted since.
            found[name] = "gone"
    return found


# --- what is repeated -----------------------------------------------------------------------------


def _replay(side: Side, first: int, last: int, looking: Sequence[Hook], put: Put) -> None:
    from hookloop.short_runs.replay import replay_run
    from hookloop.short_runs.route import ReplayError, find_routes

    routes = find_routes(cast("str", side.run), first, last)
    make = _make(side, routes[0])
    if keys := _keys(side):
        routes = [_with_changes(route, keys) for route in routes]
    is_as_it_was = side.commit is None and not side.is_changed and not keys
    try:
        found = replay_run(make, routes, beside=looking, anyway=not is_as_it_was)
    except ReplayError as error:
        if not is_as_it_was:
            raise
        put({"header": {"why_not": [str(error)]}})
        found = replay_run(make, routes, beside=looking, anyway=True)
    if (unlike := found.difference) is not None:
        put(
            {
                "header": {
                    "differs_from_record": {
                        "iter": unlike.iter,
                        "what": unlike.what,
                        "difference": unlike.difference,
                    }
                }
            }
        )
    put({"header": {"met": len(found.checked)}})


def _train(side: Side, last: int | None, looking: Sequence[Hook]) -> None:
    from hookloop.short_runs.replay import LEFT_OUT
    from hookloop.short_runs.short_run import short_run

    def make(directory: Path) -> Mapping[str, object]:
        from hookloop.config.build import arguments
        from hookloop.config.load import load

        if side.make is not None:
            return _function_of(side)(directory)
        config = load(side.place(cast("str", side.config)), list(side.settings))
        return arguments(config, run_dir=directory)

    def why_left_out(hook: Hook) -> str | None:
        from hookloop.engine.hook import reaches_outside

        return "it has nothing to do here" if isinstance(hook, LEFT_OUT) else reaches_outside(hook)

    with suppress(Enough):
        short_run(make, iters=None, hooks=looking, leave_out=why_left_out)


def _make(side: Side, route: Route) -> Make:
    from hookloop.config.build import arguments
    from hookloop.config.replaying import config_of, has_config
    from hookloop.runs.layout import RunDir

    if side.make is not None:
        function = _function_of(side)
        return lambda directory, start: function(directory)
    if not has_config(route):
        raise SideError(
            f"'{side.run}' was made by a script, so its config is not known: give --make "
            "FILE.py:FUNCTION, a function that returns the arguments of its Trainer."
        )

    def arguments_of(directory: Path, start: Line) -> Mapping[str, object]:
        home = RunDir(Path(cast("str", side.run)))
        config = config_of(home, start, side.settings, side.place)
        return arguments(config, run_dir=directory)

    return arguments_of


def _function_of(side: Side) -> Callable[[Path], Mapping[str, object]]:
    file, colon, name = cast("str", side.make).rpartition(":")
    path = Path(side.place(file)) if colon else Path()
    if not colon or not path.is_file():
        raise SideError(f"'{side.make}' is not FILE.py:FUNCTION.")
    sys.path.insert(0, str(path.parent.resolve()))
    from hookloop.config.locate import load_module

    module = load_module(path.stem)
    if not callable(function := getattr(module, name, None)):
        raise SideError(f"'{file}' has no function '{name}'.")
    return cast("Callable[[Path], Mapping[str, object]]", function)


def _keys(side: Side) -> list[str]:
    return [text.partition("=")[0].lstrip("+~") for text in side.settings]


def _with_changes(route: Route, keys: Sequence[str]) -> Route:
    stretches = [replace(one, change=(*one.change, *keys)) for one in route.stretches]
    return replace(route, stretches=stretches)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
