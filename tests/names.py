"""The names that checkpoints have in tests, which do not depend on how they are spelled."""

from hookloop.runs.checkpoint_names import checkpoint_name


def epoch_file(number: int) -> str:
    """Return the name of the checkpoint after an epoch."""
    return checkpoint_name("epoch", number)


def iter_file(number: int) -> str:
    """Return the name of the checkpoint after an iteration."""
    return checkpoint_name("iter", number)
