"""What a configuration is, and the decorator that makes one of a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.golden.attempt import Attempt


@dataclass(frozen=True)
class Configuration:
    """A training that is recorded.

    Attributes:
        number: Its number in the table.
        what: What it is about.
        train: Trains, given an attempt.
        variant: Which of several trainings with that number.
        kills: After which iterations it is killed in between, or at which places of its own.
        ranks: How many processes train together.
        resumed_on: On how many the run continues after a kill, if not on as many.
        is_fast: Whether it belongs to the short selection.
        is_chained: Whether each kill continues the run that was killed before it.
        counts: Whether the calls of an iteration are counted.
        needs: A package that only the environment of `make downstream` has.
        ends_in_order: Kills that are none: the run ends by a signal, and in order.
    """

    number: int
    what: str
    train: Callable[[Attempt], None]
    variant: str = ""
    kills: tuple[int | str, ...] = ()
    ranks: int = 1
    resumed_on: tuple[int, ...] = ()
    is_fast: bool = False
    is_chained: bool = False
    counts: bool = True
    needs: str = ""
    ends_in_order: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.what}"

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.number}_{self.variant}".rstrip("_").replace(" ", "_")

    def dies(self, kill: object) -> bool:
        """Return whether a kill is one by SIGKILL."""
        return kill not in self.ends_in_order
