"""`LastPointer`: what names the newest checkpoint of a run, for a resume to start from."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

from hookloop.checkpoint.store.storage import is_url
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.runs.checkpoint_names import LAST
from hookloop.runs.files import write_text
from hookloop.secret import without_credentials


class LastPointer:
    """The ``last_checkpoint`` of a run's directory; nothing else writes it while the run lasts.

    The stores of a run write in threads of their own. One that is slower than another may be done
    with a checkpoint when a newer one is durable, which the pointer then keeps naming.

    Args:
        has_whole_paths: Whether it holds a whole path, and only that, also for a file in the run's
            directory, as tools of other systems expect.
    """

    def __init__(self, *, has_whole_paths: bool = False) -> None:
        self._has_whole_paths = has_whole_paths
        self._orders = itertools.count()
        self._newest = -1
        self._lock = threading.Lock()

    def next_order(self) -> int:
        """Return the place of a checkpoint that is requested now among all of the run."""
        return next(self._orders)

    def mark(self, order: int, store: CheckpointStore, name: str, run_dir: Path) -> None:
        """Name a durable checkpoint in its store, and in the run's directory if it is the newest.

        Args:
            order: Its place among those of the run.
            store: The store that holds it.
            name: Its name there.
            run_dir: The run's directory.
        """
        is_own = store.location == str(run_dir)
        if not is_own:
            # Outside of the lock: a store that does not answer must not delay the others.
            store.mark_last(name)
        with self._lock:
            if order < self._newest:
                return
            if is_own and not self._has_whole_paths:
                store.mark_last(name)
            else:
                run_dir.mkdir(parents=True, exist_ok=True)
                write_text(run_dir / LAST, self._path(store, name))
            self._newest = order

    def _path(self, store: CheckpointStore, name: str) -> str:
        place = str(Path(store.location).absolute())
        if is_url(store.location):
            # The pointer is a plain file that is copied and shared with the run.
            place = without_credentials(store.location)
        return f"{place}/{name}" + ("" if self._has_whole_paths else "\n")
