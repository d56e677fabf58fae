"""The names of checkpoints and of the files beside them: made and read here alone.

Below the stores, because a run's directory is read without them: by its layout, the board and `rm`.
"""

from __future__ import annotations

import re

SUFFIX = ".pth"
"""Of a checkpoint that is a file; one that is a directory of shards has none."""

LAST = "last_checkpoint"
"""The file that names the checkpoint from which a resume starts."""

INDEX = "checkpoints.json"
"""The file that lists the checkpoints of a directory."""

MANIFEST = "manifest.json"
"""The file that lists the files of a checkpoint that is a directory; written last of all."""

_OWN = re.compile(rf"(best_.+_)?(epoch|(exception_|rewound_)?iter)_\d+({re.escape(SUFFIX)})?")

ITER = "{iter}"
"""Stands for the iteration in a request that is obeyed in a later one."""


def checkpoint_name(after: str, number: int | str) -> str:
    """Return the name of a checkpoint by what was completed in it.

    >>> checkpoint_name("epoch", 5), checkpoint_name("exception_iter", 70)
    ('epoch_5.pth', 'exception_iter_70.pth')
    """
    return f"{after}_{number}{SUFFIX}"


def best_name(metric: str, name: str) -> str:
    """Return the second name of a checkpoint that is the best by a metric.

    >>> best_name("x/accuracy", "epoch_5.pth")
    'best_x_accuracy_epoch_5.pth'
    """
    return f"best_{metric.replace('/', '_')}_{name}"


def directory_name(name: str) -> str:
    """Return the name of a checkpoint that is a directory, from that of a file.

    >>> directory_name("iter_100.pth")
    'iter_100'
    """
    return name.removesuffix(SUFFIX)


def name_at(name: str, iteration: int) -> str:
    """Return the name of a request that is obeyed in an iteration.

    >>> name_at("iter_{iter}.pth", 7)
    'iter_7.pth'
    """
    return name.replace(ITER, str(iteration))


def is_checkpoint_name(name: str) -> bool:
    """Return whether a file is a checkpoint, as far as its name tells."""
    return name.endswith(SUFFIX)


def is_own_name(name: str) -> bool:
    """Return whether a name is one that this module makes.

    >>> is_own_name("best_x_accuracy_epoch_5.pth"), is_own_name("iter_100"), is_own_name("my_5.pth")
    (True, True, False)
    """
    return _OWN.fullmatch(name) is not None


def form_of(name: str) -> str:
    """Return a name without its numbers, which those of one series have in common.

    >>> form_of("model_phase12.torch") == form_of("model_phase7.torch")
    True
    """
    return re.sub(r"\d+", "0", name)


def is_of_exception(name: str) -> bool:
    """Return whether a name is that of a checkpoint of a failed run, which no resume chooses."""
    return name.startswith("exception_")
