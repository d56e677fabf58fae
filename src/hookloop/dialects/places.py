"""Which part of the data a rank is training on, for updates that a model makes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.data.ranks.place import Place
from hookloop.update.reduction import shares_of

if TYPE_CHECKING:
    from hookloop.engine.run import Run


def place_of(run: Run) -> Place:
    """Return which part of the data the training batch of this rank is.

    Raises:
        ModelError: If the data is not shared among ranks.
    """
    (share, *_) = shares_of(run)
    assert run.train_data is not None  # Otherwise there are no shares.
    return Place(run.train_data.at.batches, *share)
