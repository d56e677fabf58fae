"""How torch computes during a run: deterministic or not, and how exactly it multiplies matrices.

The settings of torch are those of the process. They are set when a run starts to work and put back
when it ends, so that nothing is left behind for the code around it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from hookloop.errors import ModelError, nearest

Deterministic = bool | Literal["warn"]
Matmul = Literal["highest", "high", "medium"]

PRECISIONS = ("highest", "high", "medium")

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
"""The variable without which cuBLAS rejects deterministic multiplications."""


@dataclass(frozen=True)
class Arithmetic:
    """The settings of one run.

    Args:
        deterministic: True for operations that repeat their bits only; ``"warn"`` to be warned of
            others; False to leave torch as it is.
        matmul: How exactly float32 matrices are multiplied; None to leave torch as it is.

    Raises:
        ModelError: If a value is none of these.

    >>> with Arithmetic(deterministic=True).applied():
    ...     torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.are_deterministic_algorithms_enabled()
    False
    """

    deterministic: Deterministic = False
    matmul: Matmul | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.deterministic, bool) and self.deterministic != "warn":
            raise ModelError(
                f"deterministic={self.deterministic!r}: write True, 'warn' or False.",
                argument="deterministic",
            )
        if self.matmul is not None and self.matmul not in PRECISIONS:
            raise ModelError(
                f"matmul={self.matmul!r}: write one of {', '.join(PRECISIONS)}."
                f"{nearest(str(self.matmul), PRECISIONS)}",
                argument="matmul",
            )

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Compute like this until the end of the block."""
        with ExitStack() as undo:
            if self.matmul is not None:
                undo.callback(
                    torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()
                )
                torch.set_float32_matmul_precision(self.matmul)
            if not self.deterministic:
                yield
                return
            _be_deterministic(undo, warn_only=self.deterministic == "warn")
            try:
                yield
            except RuntimeError as error:
                if "deterministic" in str(error):
                    error.add_note(
                        f"deterministic={self.deterministic!r} of the run asks for this: 'warn' "
                        "computes it all the same with a warning, False without one"
                    )
                raise


def _be_deterministic(undo: ExitStack, *, warn_only: bool) -> None:
    undo.callback(
        torch.use_deterministic_algorithms,
        torch.are_deterministic_algorithms_enabled(),
        warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    cudnn = torch.backends.cudnn
    for name, value in (("deterministic", True), ("benchmark", False)):
        undo.callback(setattr, cudnn, name, getattr(cudnn, name))
        setattr(cudnn, name, value)
    if WORKSPACE not in os.environ:
        # cuBLAS reads it when it is first used, so that it helps a run that comes first.
        os.environ[WORKSPACE] = ":4096:8"
        undo.callback(partial(os.environ.pop, WORKSPACE, None))
