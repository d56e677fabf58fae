"""A hook that ends the process after the first iteration, for bench/start.py."""

from __future__ import annotations

import os

from hookloop import Hook, Run


class EndProcess(Hook):
    """Ends the process at once: the end of a run is not part of the measurement."""

    def after_train_iter(self, run: Run) -> None:
        """End."""
        os._exit(0)
