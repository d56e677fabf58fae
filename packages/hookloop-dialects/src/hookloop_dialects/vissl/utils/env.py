"""``vissl.utils.env``: the rank of this process."""

from __future__ import annotations

import os

from hookloop.dialects import World


def get_machine_local_and_dist_rank() -> tuple[int, int]:
    """Return the rank on this machine, and among all processes."""
    world = World.from_environment()
    return int(os.environ.get("LOCAL_RANK", "0")), world.rank
