"""``imix.utils.logger``: the logger of iMIX; the run's log includes it without any set-up."""

from __future__ import annotations

import logging


def setup_logger(
    output: str | None = None, distributed_rank: int = 0, **_: object
) -> logging.Logger:
    """Return the logger ``imix``, which passes on messages from INFO up.

    Args:
        output: Not used: the run's own log and console show what is logged.
        distributed_rank: Not used: each rank of a run has a log of its own.
    """
    logger = logging.getLogger("imix")
    logger.setLevel(logging.INFO)
    return logger
