"""Tell every open page what has changed: one look at the files for all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

from hookloop.runs import to_json
from hookloop_board.collection import METRICS, Collection, Entry
from hookloop_board.metrics_file import names_in

EVERY = 1.0
"""Seconds between two looks."""

COMMENT = 15.0
"""Seconds after which a silent stream gets a comment, so that nothing closes it."""

MOST_WAITING = 200
MOST_PAGES = 100
"""How many messages wait for a slow page, and how many pages are told."""

_log = logging.getLogger("hookloop")

Message = str
State = dict[str, tuple[object, str, int]]


class Events:
    """The streams of all open pages.

    Args:
        collection: The runs that are watched.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._pages: set[asyncio.Queue[Message | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._has_looked = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether no other page can be told."""
        return self._is_closed or len(self._pages) >= MOST_PAGES

    async def stream(self) -> AsyncIterator[str]:
        """Yield messages until the page goes away, or the server ends."""
        if self.is_full:
            return
        queue: asyncio.Queue[Message | None] = asyncio.Queue(MOST_WAITING)
        self._pages.add(queue)
        if self._task is None or self._task.done():
            self._has_looked.clear()
            self._task = asyncio.create_task(self._watch())
        try:
            yield "retry: 2000\n\n"
            # What the page has read before may be older than what changes are found against.
            await self._has_looked.wait()
            yield message("watching", {})
            while True:
                try:
                    waiting = await asyncio.wait_for(queue.get(), COMMENT)
                except TimeoutError:
                    waiting = ": still here\n\n"
                if waiting is None:
                    return
                yield waiting
        finally:
            self._pages.discard(queue)

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
        for queue in self._pages:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)

    async def _watch(self) -> None:
        """Look for changes as long as a page is open."""
        try:
            known = _state(await asyncio.to_thread(self._collection.entries))
        finally:
            self._has_looked.set()
        while self._pages:
            await asyncio.sleep(EVERY)
            try:
                messages, known = await asyncio.to_thread(self._look, known)
            except Exception as error:  # noqa: BLE001 - reported; the pages stay live
                _log.warning("The board could not look for changes: %r", error)
                continue
            for queue in self._pages:
                for message in messages:
                    with suppress(asyncio.QueueFull):  # A page that does not read misses some.
                        queue.put_nowait(message)

    def _look(self, known: State) -> tuple[list[Message], State]:
        entries = self._collection.entries(fresh=EVERY / 2, waits=True)
        current = _state(entries)
        changed = [number for number, state in current.items() if known.get(number) != state]
        gone = [number for number in known if number not in current]
        messages = []
        if changed or gone:
            messages.append(message("runs", {"changed": changed, "gone": gone}))
        for number in changed:
            before = known.get(number)
            if before is None or before[2] != current[number][2]:
                messages += _curves(entries[number], before[2] if before else 0)
        return messages, current


def message(kind: str, data: object) -> Message:
    r"""Return an event as it is sent.

    >>> message("runs", {"changed": ["a\nb"]})
    'event: runs\ndata: {"changed": ["a\\nb"]}\n\n'
    """
    return f"event: {kind}\ndata: {to_json(data)}\n\n"


def _state(entries: dict[str, Entry]) -> State:
    """Return what is compared between two looks: files, status, and size of the metrics."""
    return {
        number: (one.stamps, one.summary.status, stamp[1] if (stamp := one.stamps[METRICS]) else 0)
        for number, one in entries.items()
    }


def _curves(entry: Entry, size: int) -> list[Message]:
    stamp = entry.stamps[METRICS]
    if stamp is None:
        return []
    try:  # After a resume the file may be shorter: then its end is looked at.
        names, last = names_in(entry.dir.metrics_file, size if size < stamp[1] else 0)
    except OSError:
        return []
    if not names:
        return []
    return [message("curves", {"run": entry.id, "metrics": names, "iters": last})]
