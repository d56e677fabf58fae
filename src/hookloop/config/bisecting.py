"""`bisect`: the first iteration, and the first thing in it, in which two sides part, and why."""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import cast

from hookloop.config.side_process import run_side
from hookloop.data.random.states import generators_kept
from hookloop.runs.git import git
from hookloop.runs.layout import RunDir
from hookloop.short_runs.coarse import Window, find_window
from hookloop.short_runs.parting import (
    SEQUENCE,
    Found,
    Unlike,
    Write,
    compare_sides,
    differing,
    first_unlike,
    writes_in,
)
from hookloop.short_runs.route import parse_span
from hookloop.short_runs.scratch import scratch_directory
from hookloop.short_runs.sides import Block, Side, SideError, parse_side, process_variables

PROCESS = "hookloop.config.side_process"

COMPUTED = ("entry of", "output of", "forward", "loss", "backward", "update")
"""Moments at which the program computes; at all others hooks act, and data is read."""

KINDS = {
    "data": "data",
    "code": "code",
    "config": "config",
    "library": "library",
    "machine": "machine",
    "arithmetic": "arithmetic, or an operation that is not deterministic",
    "hook": "hook",
    "not repeated": "what happened to a run, and is not in its program",
}
"""The kinds of cause, in words."""


@dataclass(frozen=True)
class Bisection:
    """Where two sides part, and why.

    Attributes:
        sides: Both sides, as they were given.
        window: The iterations that were looked at, the first and the last.
        compared: What was compared, for people.
        parted: The first thing that differs; None if nothing does.
        setting: The setting behind it, if one differs.
        cause: The kind of cause; a key of `KINDS`. Empty if nothing differs.
        hook: The hook that did it.
        reason: The cause in a sentence.
        equal: What was equal in that iteration before it.
        unequal: What differs between the sides besides: each with both values.
        settings: All settings that differ.
        only: What one side alone has.
        notes: Why a side may not be what it was.
        replays: How many stretches were repeated.
        seconds: How long it took.
    """

    sides: tuple[str, str]
    window: tuple[int, int]
    compared: Sequence[str]
    parted: Unlike | None = None
    setting: Unlike | None = None
    cause: str = ""
    hook: str | None = None
    reason: str = ""
    equal: Sequence[str] = ()
    unequal: Mapping[str, Mapping[str, Sequence[object]]] = field(default_factory=dict)
    settings: Sequence[Unlike] = ()
    only: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    replays: int = 0
    seconds: float = 0.0


def bisect(  # noqa: PLR0913 - a side may differ in each of these
    one: Side | str | Path,
    other: Side | str | Path | None = None,
    *,
    iters: str | None = None,
    settings: Sequence[str] = (),
    python: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
    threads: int | None = None,
    make: str | None = None,
    alias: Sequence[str] = (),
    processes: bool = True,
    tell: Callable[[str], object] = str,
) -> Bisection:
    """Find the first iteration, and the first thing in it, in which two sides part.

    Args:
        one: A run or a config; ``runs/a@COMMIT`` with the code of a commit.
        other: The second side; by default the first one again.
        iters: The iterations to look at, ``"1:100"``.
        settings: Overrides of the second side's config, each ``key=value``.
        python: The interpreter of the second side.
        variables: Variables of the second side's process.
        threads: With how many threads the second side computes.
        make: ``file.py:function``, which returns the arguments of a script's Trainer, given a
            directory; for runs without a config.
        alias: Dialects that stand in for packages that are not installed.
        processes: Whether each side is repeated in a process of its own; otherwise in this one,
            one after the other, where only configs can differ.
        tell: Is told what is done.

    Raises:
        SideError: If a side cannot be repeated.
    """
    begun = perf_counter()
    first, second = (
        side if isinstance(side, Side) else replace(parse_side(str(side)), make=make)
        for side in (one, one if other is None else other)
    )
    changed = {
        "settings": tuple(settings),
        "python": None if python is None else str(python),
        "variables": {**second.variables, **(variables or {})},
        "threads": threads if threads is not None else second.threads,
        "is_changed": bool(settings or python or variables or threads),
    }
    second = replace(second, **changed)  # type: ignore[arg-type]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(scratch_directory("bisect")))
        sides = [_with_tree(side, folder) for side in (first, second)]
        search = _Search((sides[0], sides[1]), folder, alias=alias, processes=processes, tell=tell)
        found = search.search(None if iters is None else parse_span(iters))
    return replace(found, seconds=perf_counter() - begun)


def _with_tree(side: Side, folder: Path) -> Side:
    """Take the files of a commit out of the repository, which is left as it is."""
    if side.commit is None:
        return side
    root = git(Path.cwd(), "rev-parse", "--show-toplevel").strip()
    whole = git(Path.cwd(), "rev-parse", "--verify", f"{side.commit}^{{commit}}").strip()
    if not root or not whole:
        where = f"no commit '{side.commit}'" if root else "no git repository"
        raise SideError(f"'{side.label}': there is {where} in the working directory.")
    tree = folder / f"tree-{whole[:12]}"
    if not tree.exists():
        done = subprocess.run(
            ["git", "-C", root, "archive", "--format=tar", whole], capture_output=True, check=False
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise SideError(f"The files of commit {whole[:12]} cannot be read: {said}")
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(tree, filter="data")
    return replace(side, commit=whole, tree=str(tree), root=os.path.abspath(root))


class _Search:
    """One bisect of two sides."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        folder: Path,
        *,
        alias: Sequence[str],
        processes: bool,
        tell: Callable[[str], object],
    ) -> None:
        self._alias = list(alias)
        self._sides = sides
        self._folder = folder
        self._processes = processes
        self._tell = tell
        self._replays = 0
        self._opened = 0

    # --- where ------------------------------------------------------------------------------------

    def search(self, span: tuple[int, int] | None) -> Bisection:
        """Find the parting and its cause."""
        window = self._window(span)
        if window.first > window.last:
            return self._nothing(window, Found())
        found = self._repeat(window)
        if self._is_too_late(found, window):
            window = replace(window, first=1)
            found = self._repeat(window)
        if found.parted is None:
            # What cannot be repeated exactly need not meet its record.
            is_unmet = any(
                "differs_from_record" in one and "why_not" not in one for one in found.headers
            )
            if window.known or is_unmet:
                return self._not_repeated(window, found)
            return self._nothing(window, found)
        return self._judge(window, found)

    def _window(self, span: tuple[int, int] | None) -> Window:
        one, other = self._sides
        if one.run and other.run and not _is_changed(one, other):
            try:
                window = find_window(RunDir(Path(one.run)), RunDir(Path(other.run)))
            except (OSError, ValueError) as error:
                raise SideError(f"The runs cannot be compared: {error}") from error
            if span is not None:
                known = window.known if window.last <= span[1] else ""
                first, last = max(span[0], window.first), min(span[1], window.last)
                window = replace(window, first=first, last=last, known=known)
            if window.compared:
                self._tell(f"read: {', '.join(window.compared)}")
            return window
        if span is not None:
            return Window(*span)
        runs = [side.run for side in self._sides if side.run]
        return Window(1, min((_done(run) for run in runs), default=0) or 10**12)

    def _repeat(self, window: Window) -> Found:
        end = "the end" if window.last >= 10**12 else window.last
        self._tell(f"repeating iterations {window.first} to {end} on both sides")
        with ExitStack() as stack:
            blocks = [
                stack.enter_context(closing(self._open(side, window.first, window.last)))
                for side in self._sides
            ]
            found = compare_sides(*(iter(one) for one in blocks))
            for side, end_block in zip(self._sides, found.ends, strict=True):
                if end_block.get("end") == "failed" and found.parted is None:
                    raise SideError(f"'{side.label}' cannot be repeated: {end_block['reason']}")
        if not found.last:
            raise SideError("Neither side made an iteration.")
        return found

    def _is_too_late(self, found: Found, window: Window) -> bool:
        """Return whether the sides had parted before the window, though nothing showed it."""
        parted = found.parted
        return (
            parted is not None
            and window.first > 1
            and parted.iter == window.first
            and parted.at == "before_train_iter"
            and parted.kind in ("weight", "buffer", "optimizer", "generator")
        )

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self, window: Window, found: Found, **more: object) -> Bisection:
        compared = list(window.compared)
        if found.lines:
            compared.append(f"{found.lines} lines of {found.last - found.first + 1} iterations")
        notes = [
            f"{side.label}: {reason}"
            for side, header in zip(self._sides, found.headers, strict=True)
            for reason in cast("Sequence[str]", header.get("why_not") or ())
        ]
        values: dict[str, object] = {
            "sides": (self._sides[0].label, self._sides[1].label),
            "window": (window.first, found.last or window.last),
            "compared": compared,
            "settings": found.settings,
            "only": found.only,
            "notes": notes,
            "replays": self._replays,
        }
        return Bisection(**{**values, **more})  # type: ignore[arg-type]

    def _nothing(self, window: Window, found: Found) -> Bisection:
        # What was read says that the iterations before are equal.
        first = 1 if window.compared else window.first
        return self._answer(replace(window, first=first), found)

    def _not_repeated(self, window: Window, found: Found) -> Bisection:
        """Both programs do the same now, and the records differ: something else happened then."""
        which = [
            f"{side.label} does not meet what it recorded, first at iteration {unlike['iter']} "
            f"({unlike['what']})"
            for side, header in zip(self._sides, found.headers, strict=True)
            if (unlike := cast("Mapping[str, object] | None", header.get("differs_from_record")))
        ]
        said = "; ".join(which) or "both meet what they recorded on the way"
        reason = (
            f"repeated now, both sides are equal in iterations {window.first} to {found.last}, "
            f"but their records are not ({window.known or 'see below'}): {said}. So it was an "
            "error of arithmetic or memory, a file that was edited, or code, data or packages that "
            "were others then"
        )
        parted = Unlike(window.last, 0, "the record", "record", window.known, ("", ""))
        more = {"parted": parted, "cause": "not repeated", "reason": reason}
        return self._answer(window, found, **more)

    def _judge(self, window: Window, found: Found) -> Bisection:
        parted = cast("Unlike", found.parted)
        unequal = differing(found.headers)
        setting = _setting_behind(parted, found.settings)
        given: dict[str, object] = {
            "parted": parted, "setting": setting, "equal": found.equal, "unequal": unequal,
        }  # fmt: skip
        cause, reason, hook = self._cause(parted, setting, unequal, found)
        return self._answer(window, found, cause=cause, reason=reason, hook=hook, **given)

    # --- why --------------------------------------------------------------------------------------

    def _cause(
        self,
        parted: Unlike,
        setting: Unlike | None,
        unequal: Mapping[str, Mapping[str, Sequence[object]]],
        found: Found,
    ) -> tuple[str, str, str | None]:
        if parted.kind == "generator" and parted.name.startswith("data "):
            said = f"the generator of the data's order differs{_of_data(unequal)}"
            return "data", said, None
        if parted.kind == "ids":
            return "data", f"the order of the samples differs{_of_data(unequal)}", None
        if parted.kind == "batch" and parted.at == "before_train_iter":
            same = "the ids are equal" if "ids" in found.equal else "all before it is equal"
            return "data", f"the content of the batch differs; {same}{_of_data(unequal)}", None
        is_first = parted.iter == 1 and parted.at == "before_train_iter"
        if parted.kind == "hook" or (not _is_computed(parted.at) and not is_first):
            written = self._who_wrote(setting or parted)
            if written is not None:
                write, side = written
                where = f"at {write.point}, after iteration {write.iter}"
                label = self._sides[side].label
                return "hook", f"the hook '{write.hook}' of {label} changed it {where}", write.hook
        elif setting is not None and not (unequal.keys() & {"config", "code"}):
            written = self._who_wrote(setting)
            if written is not None:
                write, side = written
                return "hook", f"the hook '{write.hook}' changed the setting", write.hook
        cause, why = self._exchange(parted, setting, unequal)
        what = f"{_show(setting)}; " if setting is not None else ""
        return cause, f"{what}{why}", None

    def _exchange(
        self,
        parted: Unlike,
        setting: Unlike | None,
        unequal: Mapping[str, Mapping[str, Sequence[object]]],
    ) -> tuple[str, str]:
        """Find the cause among what differs between the sides, one thing at a time."""
        candidates = [one for one in ("code", "library", "machine", "config") if one in unequal]
        candidates = [one for one in candidates if one != "config" or _counts(unequal[one])]
        if setting is not None and setting.kind == "group" and "config" in candidates:
            candidates = ["config"]
        if not candidates:
            return self._repeat_itself(parted)
        tried: list[str] = []
        for candidate in candidates[:-1][:2]:
            if (is_it := self._try(candidate, parted)) is None:
                continue
            if is_it:
                return candidate, f"{_differs(candidate, unequal)}: with this alone it differs, too"
            tried.append(candidate)
        left = [one for one in candidates if one not in tried]
        if len(left) == 1:
            alone = " alone" if not tried else f"; exchanging {' and '.join(tried)} changes nothing"
            return left[0], f"{_differs(left[0], unequal)}{alone}"
        return left[0], f"one of these, which cannot be exchanged by itself: {', '.join(left)}"

    def _try(self, candidate: str, parted: Unlike) -> bool | None:
        """Return whether the first side differs from itself with one thing of the second."""
        one, other = self._sides
        changes: dict[str, object]
        if candidate == "code":
            changes = {"commit": other.commit, "tree": other.tree, "root": other.root}
            if one.tree == other.tree:
                return None
        elif candidate == "library":
            if one.python == other.python:
                return None
            changes = {"python": other.python}
        elif candidate == "machine":
            changes = {"variables": other.variables, "threads": other.threads}
        elif other.settings or one.settings:
            changes = {"settings": other.settings}
        else:
            return None
        found = self._compare_once((one, replace(one, **changes)), parted)  # type: ignore[arg-type]
        return None if found is None else found.parted is not None

    def _repeat_itself(self, parted: Unlike) -> tuple[str, str]:
        """Tell a machine from chance: does a side repeat itself?"""
        for side in self._sides:
            found = self._compare_once((side, side), parted)
            if found is not None and found.parted is not None:
                return "arithmetic", (
                    f"nothing differs between the sides, and {side.label} differs from itself "
                    f"when it is repeated ({found.parted})"
                )
        return "machine", (
            "nothing that is known differs between the sides, and each repeats itself: files that "
            "the code reads, or the machine"
        )

    def _compare_once(self, sides: tuple[Side, Side], parted: Unlike) -> Found | None:
        with ExitStack() as stack:
            blocks = [
                stack.enter_context(closing(self._open(side, parted.iter, parted.iter)))
                for side in sides
            ]
            found = compare_sides(*(iter(one) for one in blocks))
        failed = any(one.get("end") == "failed" for one in found.ends)
        return None if failed and found.parted is None else found

    def _who_wrote(self, target: Unlike) -> tuple[Write, int] | None:
        """Return the first call of a hook that only one side has, or that wrote something else."""
        if target.kind == SEQUENCE:
            return None
        more = {"mode": "hooks", "kind": target.kind, "name": target.name}
        writes = []
        for side in self._sides:
            with closing(self._open(side, target.iter, target.iter, **more)) as blocks:
                writes.append(writes_in(iter(blocks)))
        return first_unlike(*writes)

    # --- processes --------------------------------------------------------------------------------

    def _open(self, side: Side, first: int, last: int, **more: object) -> _Blocks:
        self._replays += 1
        limit = None if side.run is None and last >= 10**12 else last
        spec = side.to_spec(first=first, last=limit, alias=self._alias, **more)
        if not self._processes:
            return _InProcess(spec)
        self._opened += 1
        return _Process(side, spec, self._folder / f"side-{self._opened}")


class _Blocks:
    """The blocks that a side writes."""

    def __iter__(self) -> Iterator[Block]:
        raise NotImplementedError

    def close(self) -> None:
        """Want no more."""


class _InProcess(_Blocks):
    """A side that is repeated in this process, as a whole."""

    def __init__(self, spec: Mapping[str, object]) -> None:
        self._spec = spec

    def __iter__(self) -> Iterator[Block]:
        blocks: list[Block] = []
        with generators_kept():
            run_side(self._spec, blocks.append)
        # As it would come from another process.
        return iter([json.loads(json.dumps(one)) for one in blocks])


class _Process(_Blocks):
    """A side that is repeated in a process of its own."""

    def __init__(self, side: Side, spec: Mapping[str, object], place: Path) -> None:
        place.mkdir()
        pipe, described = place / "lines", place / "side.json"
        os.mkfifo(pipe)
        described.write_text(json.dumps({**spec, "to": str(pipe)}), encoding="utf-8")
        # Opened before the other end, which would wait otherwise; the reader waits by select.
        self._file = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self._side, self._said = side, place / "output.txt"
        python = side.python or sys.executable
        with open(self._said, "wb") as output:
            try:
                self._process = subprocess.Popen(
                    [python, "-P", "-m", PROCESS, str(described)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=process_variables(side),
                )
            except OSError as error:
                os.close(self._file)
                raise SideError(f"'{python}' cannot be started: {error}") from error

    def __iter__(self) -> Iterator[Block]:
        rest, is_ended = b"", False
        while True:
            select.select([self._file], [], [], 0.2)
            ended = self._process.poll() is not None  # Asked first: it may write, and then end.
            try:
                data = os.read(self._file, 1 << 20)
            except BlockingIOError:
                continue
            if not data:
                if ended:
                    break
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.02)
                continue
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                block = cast("Block", json.loads(line))
                is_ended = is_ended or "end" in block
                yield block
        if not is_ended:
            raise SideError(
                f"The process of '{self._side.label}' ended with {self._process.returncode}:\n"
                f"{self._tail()}"
            )

    def _tail(self) -> str:
        return self._said.read_bytes()[-2000:].decode(errors="replace").strip()

    def close(self) -> None:
        """Let the process end: its next line has no reader."""
        os.close(self._file)
        for end in (None, self._process.terminate, self._process.kill):
            if end is not None:
                end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
                return


# --- words ----------------------------------------------------------------------------------------


def _is_changed(one: Side, other: Side) -> bool:
    """Return whether a side is other than its run was, so that its record says nothing."""
    if os.path.realpath(str(one.run)) == os.path.realpath(str(other.run)):
        return True
    if any(not os.path.exists(side.label) for side in (one, other)):  # With another commit.
        return True
    return other.is_changed


def _done(run: str) -> int:
    from hookloop.runs.interventions import read_interventions
    from hookloop.short_runs.route import completed, present_branch

    directory = RunDir(Path(run))
    return completed(directory, present_branch(read_interventions(directory)))


def _is_computed(at: str) -> bool:
    return at.startswith(("entry of", "output of")) or at in COMPUTED


def _setting_behind(parted: Unlike, settings: Sequence[Unlike]) -> Unlike | None:
    """Return the setting that explains a number, if one differs."""
    if parted.kind in ("ids", "batch", "generator") or not settings:
        return None
    if parted.at in ("update", "after_train_iter", "before_train_iter"):
        groups = [one for one in settings if one.kind == "group"]
        rates = [one for one in groups if one.name.endswith(".lr")]
        return next(iter(rates or groups), None)
    modules = [one for one in settings if one.kind == "setting"]
    if not modules:
        return None
    # That of the module whose output differs, before those of others.
    name = parted.at.removeprefix("output of ").partition(" (call")[0]
    own = [one for one in modules if one.name.rpartition(".")[0] == name.removeprefix("model")]
    return (own or modules)[0]


def _counts(unlike: Mapping[str, Sequence[object]]) -> list[str]:
    """Return the keys of a config that may change what is computed."""
    shown = ("hooks", "default_hooks", "max_iters", "max_epochs", "run_dir")
    return [key for key in unlike if key.partition(".")[0] not in shown[:2]]


def _of_data(unequal: Mapping[str, Mapping[str, Sequence[object]]]) -> str:
    config = unequal.get("config") or {}
    keys = [key for key in config if key.startswith(("train_data", "seed", "mix", "vars"))]
    code = list(unequal.get("code") or ())
    said = [f"config: {', '.join(keys)}"] if keys else []
    said += [f"code: {', '.join(code[:3])}"] if code else []
    return f" ({'; '.join(said)})" if said else ""


def _differs(candidate: str, unequal: Mapping[str, Mapping[str, Sequence[object]]]) -> str:
    unlike = unequal[candidate]
    shown = [
        key if candidate == "code" else f"{key} {_short(one)} and {_short(other)}"
        for key, (one, other) in list(unlike.items())[:4]
    ]
    more = f" and {len(unlike) - 4} more" if len(unlike) > 4 else ""
    return f"the {candidate} differs ({', '.join(shown)}{more})"


def _show(setting: Unlike) -> str:
    return f"the {setting.kind} {setting.name} is {setting.values[0]} and {setting.values[1]}"


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
