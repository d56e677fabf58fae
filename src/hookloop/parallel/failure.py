"""The last word of a rank that fails, for the others, whose collectives then break without one."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

    from hookloop.parallel.world import World

_KEY = "hookloop/failed"
_HEARD = "hookloop/heard"
_WAITED = "hookloop/waited/"
_SEPARATOR = "\n--\n"

ANSWER = 5.0
"""Seconds in which the store answers; without an answer, the connection to it is cut.

torch's store has a limit for a wait, but none for a question.
"""

Answer = TypeVar("Answer")


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


class FailureNotice:
    """Says why this rank fails, and finds out why another one did.

    Args:
        world: The rank of this process and the number of all.
        store: Where all ranks can read and write.
        patience: Seconds to wait for the word of another rank.
        answer: Seconds in which the store has to answer.
    """

    def __init__(
        self, world: World, store: Store, patience: float = 1.0, answer: float = ANSWER
    ) -> None:
        self._world = world
        self._store = store
        self._patience = timedelta(seconds=patience)
        self._answer = answer
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
            self._ask(lambda: self._store.add(_HEARD, 1))

    def of_another(self, error: BaseException, iteration: int) -> PeerFailed | None:
        """Return the failure of another rank, if an error here is what its end looks like."""
        if not is_broken_connection(error):
            return None
        word, is_late = "", is_timeout(error)
        try:
            if is_late:
                self._say(self._who_did_not_come(iteration))
            # A rank that fails has said so before its connections break; a killed one has not.
            if self._has_word():
                word = self._ask(lambda: self._store.get(_KEY)).decode()
            self._ask(lambda: self._store.add(_HEARD, 1))
        except RuntimeError:  # The store is gone, or the network to it is.
            pass
        reason, _, trace = word.partition(_SEPARATOR)
        if reason.startswith(f"rank {self._world.rank} failed"):
            return None
        if not reason:
            self._is_cut_off = True
            reason = (
                f"no answer from another rank in time after iteration {iteration}, nor from the "
                "store of all ranks: the network between the hosts is cut, or a host is gone"
                if is_late
                else f"the connection to another rank broke in iteration {iteration}: it was "
                "killed, or its host is gone"
            )
        return PeerFailed(reason, trace)

    def _who_did_not_come(self, iteration: int) -> str:
        """Return which ranks the others have waited for in vain."""
        self._ask(lambda: self._store.set(f"{_WAITED}{self._world.rank}", ""))
        time.sleep(self._patience.total_seconds())  # Their patience ends at about the same time.
        others = [rank for rank in range(self._world.size) if rank != self._world.rank]
        missing = [rank for rank in others if not self._has(f"{_WAITED}{rank}")]
        who = f"rank {missing[0]}" if len(missing) == 1 else f"the ranks {missing}"
        return (
            f"{who} did not come in time after iteration {iteration}: it hangs, or does something "
            "that the others do not do. parallel={'timeout': ...} sets how long they wait"
        )

    def _say(self, word: str) -> None:
        with suppress(RuntimeError):  # The store may be gone, with whoever kept it.
            self._ask(lambda: self._store.compare_set(_KEY, "", word))

    def _has_word(self) -> bool:
        """Wait for the word of another rank."""
        end = time.monotonic() + self._patience.total_seconds()
        # Not by the store's own wait, which logs its time limit as a warning of the network.
        while not self._has(_KEY):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def wait_for_readers(self) -> None:
        """Wait until the others have heard why the run ends, if the store ends with this process.

        torchrun keeps the store in its own process, so nobody needs to wait there.
        """
        is_kept_elsewhere = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        if self._is_cut_off or not self._world.is_main or is_kept_elsewhere:
            return
        end = time.monotonic() + self._patience.total_seconds()
        with suppress(RuntimeError):
            while time.monotonic() < end:
                if self._ask(lambda: self._store.add(_HEARD, 0)) >= self._world.size:
                    break
                time.sleep(0.02)

    def _has(self, key: str) -> bool:
        return self._ask(lambda: self._store.check([key]))

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        """Return what the store answers; raise a RuntimeError if it does not within the limit."""
        if self._is_cut_off:
            raise RuntimeError("the store has not answered before")
        answers: SimpleQueue[Answer | RuntimeError] = SimpleQueue()

        def ask() -> None:
            try:
                answers.put(question())
            except RuntimeError as error:
                answers.put(error)

        threading.Thread(target=ask, daemon=True).start()
        try:
            answer = answers.get(timeout=self._answer)
        except Empty as error:
            self._is_cut_off = True
            raise RuntimeError(f"the store has not answered for {self._answer:g} s") from error
        if isinstance(answer, RuntimeError):
            raise answer
        return answer


def is_timeout(error: BaseException) -> bool:
    """Return whether an error is what a rank that does not come looks like."""
    text = str(error).lower()
    return "timed out" in text or "timeout" in text


def is_broken_connection(error: BaseException) -> bool:
    """Return whether an error is what the end of another rank looks like."""
    from torch.distributed import DistError

    # gloo and NCCL raise a RuntimeError, or a class below it, for everything alike.
    is_theirs = any(word in str(error) for word in ("gloo", "NCCL"))
    return isinstance(error, DistError) or (isinstance(error, RuntimeError) and is_theirs)
