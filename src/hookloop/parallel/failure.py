"""The last word of a rank that fails, for the others, whose collectives then break without one."""

from __future__ import annotations

import os
import time
import traceback
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

    from hookloop.parallel.world import World

_KEY = "hookloop/failed"
_HEARD = "hookloop/heard"
_WAITED = "hookloop/waited/"
_SEPARATOR = "\n--\n"


class PeerFailed(SystemExit):
    """Another rank of the run failed, so that this one cannot continue.

    It is a `SystemExit`: the rank that failed shows its traceback, and those of the others, whose
    connections broke, would only hide it.

    Attributes:
        reason: Which rank failed, when, and why.
        traceback: That of the rank that failed.
    """

    def __init__(self, reason: str, traceback: str = "") -> None:
        super().__init__(1)
        self.reason = reason
        self.traceback = traceback

    def __str__(self) -> str:
        return self.reason


class LastWord:
    """Says why this rank fails, and finds out why another one did.

    Args:
        world: The rank of this process and the number of all.
        store: Where all ranks can read and write.
        patience: Seconds to wait for the word of another rank.
    """

    def __init__(self, world: World, store: Store, patience: float = 1.0) -> None:
        self._world = world
        self._store = store
        self._patience = timedelta(seconds=patience)
        self._is_cut_off = False

    def say(self, error: BaseException, iteration: int) -> None:
        """Leave the reason, unless another rank has failed before."""
        what = "".join(traceback.format_exception_only(error)).strip()
        word = f"rank {self._world.rank} failed in iteration {iteration}: {what}"
        trace = "".join(traceback.format_exception(error))
        if self._is_cut_off or isinstance(error, PeerFailed):
            return  # What happened is known, or nobody can be told.
        self._say(word + _SEPARATOR + trace)
        with suppress(RuntimeError):
            self._store.add(_HEARD, 1)

    def of_another(self, error: BaseException, iteration: int) -> PeerFailed | None:
        """Return the failure of another rank, if an error here is what its end looks like."""
        if not is_broken_connection(error):
            return None
        if "imed out" in str(error):
            self._say(self._who_did_not_come(iteration))
        # A rank that fails has said so before its connections break. One that was killed has not.
        try:
            word = self._store.get(_KEY).decode() if self._has_word() else ""
            self._store.add(_HEARD, 1)
        except RuntimeError:  # The store is gone.
            word = ""
        reason, _, trace = word.partition(_SEPARATOR)
        if reason.startswith(f"rank {self._world.rank} failed"):
            return None
        if not reason:
            self._is_cut_off = True
            reason = (
                f"the connection to another rank broke in iteration {iteration}: it was killed, or "
                "its host is gone"
            )
        return PeerFailed(reason, trace)

    def _who_did_not_come(self, iteration: int) -> str:
        """Return which ranks the others have waited for in vain."""
        self._store.set(f"{_WAITED}{self._world.rank}", "")
        time.sleep(self._patience.total_seconds())  # Their patience ends at about the same time.
        others = [rank for rank in range(self._world.size) if rank != self._world.rank]
        missing = [rank for rank in others if not self._store.check([f"{_WAITED}{rank}"])]
        who = f"rank {missing[0]}" if len(missing) == 1 else f"the ranks {missing}"
        return (
            f"{who} did not come in time after iteration {iteration}: it hangs, or does something "
            "that the others do not do. parallel={'timeout': ...} sets how long they wait"
        )

    def _say(self, word: str) -> None:
        with suppress(RuntimeError):  # The store may be gone, with whoever kept it.
            self._store.compare_set(_KEY, "", word)

    def _has_word(self) -> bool:
        """Wait for the word of another rank."""
        end = time.monotonic() + self._patience.total_seconds()
        # Not by the store's own wait, which logs its time limit as a warning of the network.
        while not self._store.check([_KEY]):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def linger(self) -> None:
        """Wait until the others have heard why the run ends, if the store ends with this process.

        torchrun keeps the store in its own process, so nobody needs to wait there.
        """
        is_kept_elsewhere = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        if self._is_cut_off or not self._world.is_main or is_kept_elsewhere:
            return
        end = time.monotonic() + self._patience.total_seconds()
        with suppress(RuntimeError):
            while self._store.add(_HEARD, 0) < self._world.size and time.monotonic() < end:
                time.sleep(0.02)


def is_broken_connection(error: BaseException) -> bool:
    """Return whether an error is what the end of another rank looks like."""
    from torch.distributed import DistError

    # gloo and NCCL raise a RuntimeError, or a class below it, for everything alike.
    is_theirs = any(word in str(error) for word in ("gloo", "NCCL"))
    return isinstance(error, DistError) or (isinstance(error, RuntimeError) and is_theirs)
