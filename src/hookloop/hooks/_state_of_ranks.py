"""`StateOfRanks`: the base of hooks whose state differs from rank to rank."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, cast

from hookloop.engine.hook import Hook

if TYPE_CHECKING:
    from hookloop.engine.run import Run

OF_RANKS = "of_ranks"


class StateOfRanks(Hook):
    """Keep the states of all ranks in a checkpoint, and give each rank its own back.

    The first rank writes the checkpoint, with its own state of each hook. That is right for hooks
    whose state follows from counters and metrics. It is wrong for a hook that has seen this rank's
    part of the data.

    Attributes:
        differs_with_logical: Whether it differs with logical ranks, too, which leave equal buffers
            and random numbers on all processes.
    """

    differs_with_logical = False

    def own_state(self) -> dict[str, object]:
        """Return what differs from rank to rank: entries that replace those of the state."""
        return self.state_dict()

    def divide_state(
        self, states: Sequence[Mapping[str, object]], rank: int, size: int
    ) -> Mapping[str, object]:
        """Return the own state of a rank where the run had another number of ranks.

        Args:
            states: What `own_state` returned on each rank then.
            rank: This rank.
            size: How many ranks there are now.
        """
        return states[0]

    def before_save_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        # A rank that failed speaks for itself alone.
        if run.world.is_alone or run._internals.ranks.is_broken:
            return
        if run.world.logical and not self.differs_with_logical:
            return
        hooks = cast("dict[str, dict[str, object]]", checkpoint["hooks"])
        own = self.own_state()
        shared = {name: part for name, part in hooks[self.name].items() if name not in own}
        hooks[self.name] = {**shared, OF_RANKS: run.gather(own)}

    def after_load_checkpoint(self, run: Run, checkpoint: MutableMapping[str, object]) -> None:
        hooks = checkpoint.get("hooks")
        state = hooks.get(self.name) if isinstance(hooks, dict) else None
        rank, size = run.world.rank, run.world.size
        # What else it may be, in a damaged file, is reported when it is restored.
        if not isinstance(state, Mapping) or (OF_RANKS not in state and size == 1):
            return
        rest = {name: part for name, part in state.items() if name != OF_RANKS}
        states = cast("list[Mapping[str, object]]", state.get(OF_RANKS, [rest]))
        own = states[rank] if len(states) == size else self.divide_state(states, rank, size)
        cast("dict[str, object]", hooks)[self.name] = {**rest, **own}
