"""Train on many ranks: the options ``--ranks``, ``--nodes``, ``--rendezvous``, ``--restarts``."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import Verb, chosen_aliases
from hookloop.cli.shared.output import current_output
from hookloop.cli.shared.report import print_error, print_text
from hookloop.errors import HookloopError, IntervalError
from hookloop.parallel.settings import GROW_AFTER, PATIENCE, read_seconds

if TYPE_CHECKING:
    SizesType = click.ParamType[tuple[int, int]]
    from hookloop.config.tree import Config
    from hookloop.parallel.launch import Ended
    from hookloop.parallel.processes import Starter
    from hookloop.parallel.rendezvous import Layout, Rendezvous
    from hookloop.parallel.verdict import Cause

else:
    SizesType = click.ParamType  # Older versions of click take no type.

PRELOADED = (
    "torch._dynamo",  # Every optimizer imports it, for longer than torch itself.
    "torch.nn.parallel.distributed",
    "hookloop.cli.train.train",
    "hookloop.cli.train.resume",
    "hookloop.config.build",
)
"""What each rank would import, once for all."""

ranks_option = click.option(
    "--ranks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Train on N processes on this node, as torchrun --nproc-per-node N would.",
)


class Sizes(SizesType):
    """``4``, or ``2..4``: how many there are, and how many of them are enough."""

    name = "sizes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return the smallest and the largest number."""
        if isinstance(value, tuple):
            return value
        first, dots, last = str(value).partition("..")
        texts = [first, last if dots else first]
        if not all(text.isdecimal() for text in texts) or not 0 < int(texts[0]) <= int(texts[1]):
            self.fail(f"'{value}' is not a number, or a range such as 2..4.", param, ctx)
        return int(texts[0]), int(texts[1])


def read_time(context: click.Context, option: click.Parameter, given: str) -> float:
    """Read a time: seconds, or with its unit."""
    try:
        seconds = read_seconds(float(given) if given.isdecimal() else given)
    except IntervalError:
        seconds = None
    if seconds is None:
        raise click.BadParameter(f"'{given}' is not a time: write seconds, or as in '15 min'.")
    return seconds


def launch_options(function: Verb) -> Verb:
    """Add the options for a training on several processes, which a verb gets as ``launch``."""
    options = (
        click.option(
            "--ranks",
            type=Sizes(),
            metavar="N|A..B",
            help="Train on N processes on this node; on A to B, as many as are left.",
        ),
        click.option(
            "--nodes",
            type=Sizes(),
            default=(1, 1),
            metavar="N|A..B",
            help="Train on N nodes: start this command on each, with the same options.",
        ),
        click.option(
            "--rendezvous",
            metavar="HOST:PORT",
            help="Where the nodes meet: a port of one of them. Not needed in a SLURM step.",
        ),
        click.option(
            "--restarts",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            help="Start all ranks again, up to N times, when one is lost.",
        ),
        click.option(
            "--patience",
            default=f"{PATIENCE / 60:g} min",
            metavar="TIME",
            callback=read_time,
            show_default=True,
            help="How long to wait for the launchers of the other nodes, before each start.",
        ),
        click.option(
            "--grow-after",
            default=f"{GROW_AFTER / 60:g} min",
            metavar="TIME",
            callback=read_time,
            show_default=True,
            help="How long fewer ranks train, before as many as possible are started again.",
        ),
    )

    @functools.wraps(function)
    def verb(
        *args: object,
        ranks: tuple[int, int] | None,
        nodes: tuple[int, int],
        rendezvous: str | None,
        restarts: int,
        patience: float,
        grow_after: float,
        **others: object,
    ) -> object:
        least = (ranks or (0, 0))[0], nodes[0]
        most = ranks and ranks[1]
        launch = Launch(most, nodes[1], rendezvous, restarts, patience, *least, grow_after)
        return function(*args, launch=launch, **others)

    # click lists them in the order of the decorators, of which the last is the outermost.
    for option in reversed(options):
        verb = option(verb)
    return verb


@dataclass(frozen=True)
class Launch:
    """What the options ask for.

    Attributes:
        ranks: The processes on this node; None to train in this process.
        nodes: The nodes.
        rendezvous: Where they meet.
        restarts: How often the ranks may be started again.
        patience: Seconds to wait for the launchers of the other nodes.
        least_ranks: How many processes on this node are enough; 0 for all.
        least_nodes: How many nodes are enough; 0 for all.
        grow_after: Seconds for which fewer ranks train, before all are started again.
    """

    ranks: int | None
    nodes: int = 1
    rendezvous: str | None = None
    restarts: int = 0
    patience: float = PATIENCE
    least_ranks: int = 0
    least_nodes: int = 0
    grow_after: float = GROW_AFTER

    def check(self) -> None:
        """Reject options that do not fit together, or this process."""
        if self.ranks is None:
            given = {"--nodes": self.nodes > 1, "--rendezvous": self.rendezvous is not None}
            given["--restarts"] = self.restarts > 0
            given["--patience"] = self.patience != PATIENCE
            given["--grow-after"] = self.grow_after != GROW_AFTER
            for name in (name for name, is_given in given.items() if is_given):
                raise click.UsageError(f"{name} needs --ranks N, the processes on each node.")
            return
        is_elastic = 0 < self.least_ranks < self.ranks or 0 < self.least_nodes < self.nodes
        if is_elastic and not self.restarts:
            raise click.UsageError(
                "a range of --ranks or --nodes needs --restarts N: how often all may be started "
                "again with those that are left."
            )
        if "RANK" in os.environ:
            raise HookloopError(
                f"--ranks {self.ranks}: this process is a rank already, because RANK="
                f"{os.environ['RANK']} is set. Leave out --ranks here, or the other launcher."
            )

    def layout(self) -> Layout:
        """Return how many ranks there are, and where they meet."""
        from hookloop.parallel import slurm
        from hookloop.parallel.rendezvous import Layout

        place = self.rendezvous
        if self.nodes > 1 and place is None and slurm.is_step():
            place = "{}:{}".format(*slurm.meeting_place())
        if self.nodes > 1 and place is None:
            raise click.UsageError(
                "--nodes needs --rendezvous HOST:PORT: a free port of one of the nodes, the same "
                "for all."
            )
        if place is not None and not place.rpartition(":")[2].isdecimal():
            raise click.UsageError(f"--rendezvous: '{place}' must be HOST:PORT, as in gpu1:29500.")
        return Layout(
            self.ranks or 1,
            self.nodes,
            place,
            self.patience,
            least_ranks=self.least_ranks,
            least_nodes=self.least_nodes,
            grow_after=self.grow_after,
        )

    @contextmanager
    def on_ranks(self, config: Config) -> Iterator[Callable[[Sequence[str]], int]]:
        """Yield what runs a verb of the command line on the ranks, and returns the exit code.

        Args:
            config: What they build; its problems are shown here, once, and not by each rank.
        """
        from hookloop.parallel.launch import threads_of_ranks
        from hookloop.parallel.processes import Starter

        layout = self.layout()
        with Starter(PRELOADED) as starter:
            starter.warm_up(threads_of_ranks(layout.ranks))  # While this process looks at it.
            reject_problems(config)
            yield lambda verb: self._run(verb, layout, starter)

    def _run(self, verb: Sequence[str], layout: Layout, starter: Starter) -> int:
        from hookloop.parallel.launch import THREADS

        names = chosen_aliases()
        aliases = [part for name in names for part in ("--alias", name)]
        if THREADS not in os.environ and layout.ranks > 1:
            print_text(f"Each rank computes with one thread; {THREADS} sets more.", err=True)
        output = current_output()
        with TemporaryDirectory(prefix="hookloop-launch-", ignore_cleanup_errors=True) as folder:
            command = ["-m", "hookloop", *verb, *output.flags, *aliases]
            with output.of_ranks(Path(folder)):
                return Restarts(command, layout, Path(folder), self.restarts, starter).run()


def reject_problems(config: Config) -> None:
    """Reject a config with problems here, once, and not on each rank, seconds later."""
    from hookloop.config.blueprint import draw

    draw(config)


class Restarts:
    """Starts the ranks, and starts them again after a failure that may pass.

    Args:
        command: The arguments for Python.
        layout: How many ranks there are.
        folder: A private directory.
        restarts: How often they may be started again.
        starter: Starts them.
    """

    def __init__(
        self,
        command: Sequence[str],
        layout: Layout,
        folder: Path,
        restarts: int,
        starter: Starter,
    ) -> None:
        self._starter = starter
        self._ranks = layout.ranks
        self._grow_after = layout.grow_after
        self._grown = 0
        self._command = command
        self._layout = layout
        self._folder = folder
        self._restarts = restarts

    def run(self) -> int:
        """Run the ranks to the end, and return the exit code."""
        from hookloop.parallel.rendezvous import Rendezvous
        from hookloop.parallel.verdict import find_cause

        rendezvous = Rendezvous(self._layout)
        seen: set[object] = set()
        number, why = 0, "it was ended"
        try:
            while True:
                ended = self._try(rendezvous, number)
                # Launchers of other nodes may have started their ranks more often than this one.
                number = ended.attempt
                cause = None
                code = orderly_code(ended)
                if ended.has_grown and ended.signal is None and code != 0:
                    fault = find_cause(ended) if code is None else None
                    if fault is None or fault.may_pass:  # A rank that had not begun to train dies.
                        self._grow()
                        number += 1
                        continue
                if code is None:
                    cause = find_cause(ended)
                    if ended.signal is not None and (cause is None or not cause.traceback):
                        why = f"it was ended by {signal.Signals(ended.signal).name}"
                        return 128 + ended.signal
                if cause is None:
                    why = ""
                    return code or 0
                left = self._restarts - (number - self._grown)
                is_repeated = cause.repeats is not None and cause.repeats in seen
                cause = replace(cause, may_pass=cause.may_pass and not rendezvous.is_over)
                again = cause.may_pass and not is_repeated and ended.signal is None and left > 0
                self._show(cause, left, again=again, is_repeated=is_repeated)
                if not again:
                    why = cause.messages[0]
                    return cause.code
                self._shrink(ended)
                seen.add(cause.repeats)
                number += 1
        finally:
            rendezvous.leave(why)

    def _try(self, rendezvous: Rendezvous, number: int) -> Ended:
        from hookloop.parallel.launch import Attempt

        folder = self._folder / f"attempt-{number}"
        folder.mkdir()
        return Attempt(
            self._command,
            rendezvous,
            folder,
            number,
            self._starter,
            self._ranks,
            self._grow_after,
        ).run()

    def _shrink(self, ended: Ended) -> None:
        """Go on with the ranks that are left, if these are enough."""
        least = self._layout.least_ranks or self._layout.ranks
        fewer = max(least, self._ranks - ended.lost_ranks)
        if fewer == self._ranks:
            return
        if self._ranks == self._layout.ranks and self._grown:  # They did not last, so wait longer.
            self._grow_after *= 2
        self._ranks = fewer
        print_text(
            f"{_count(fewer)} here; {self._layout.ranks} again after {self._grow_after:g} s.",
            err=True,
        )

    def _grow(self) -> None:
        self._grown += 1
        self._ranks = self._layout.ranks
        where = "" if self._layout.nodes == 1 else ", on all nodes that are there"
        print_text(f"All ranks are started again{where}, {_count(self._ranks)} here.", err=True)

    def _show(self, cause: Cause, left: int, *, again: bool, is_repeated: bool) -> None:
        for message in cause.messages:
            print_error(message)
        context = click.get_current_context(silent=True)
        shows_all = context is not None and context.params.get("show_all")
        # The user's own code is to be searched for the reason, so its traceback is always shown.
        if cause.traceback and (cause.code == 1 or shows_all):
            print_text(cause.traceback.rstrip(), err=True)
        if again:
            print_text(f"All ranks are started again; restarts left: {left - 1}.", err=True)
        elif self._restarts and is_repeated:
            print_text("It failed there before, so it is not started again.", err=True)
        elif self._restarts and cause.may_pass:
            print_text("No restart is left.", err=True)


def _count(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def orderly_code(ended: Ended) -> int | None:
    """Return the exit code of a run that all ranks ended in order; None if one did not."""
    reports = ended.reports.values()
    if ended.codes or ended.error is not None or not reports:
        return None
    if not all(report.is_in_order for report in reports):
        return None
    codes = [report.exit_code or 0 for report in reports]
    return next((code for code in codes if code), 0)
