"""`AccuracyMeter`, `PrecisionAtKMeter`, `RecallAtKMeter`: meters of the k best classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hookloop_dialects.vissl.classy_vision.generic.distributed_util import all_reduce_sum
from hookloop_dialects.vissl.classy_vision.generic.targets import maybe_convert_to_one_hot
from hookloop_dialects.vissl.classy_vision.meters.classy_meter import ClassyMeter


class TopKMeter(ClassyMeter):
    """Count hits among the k best classes; a subclass says what a hit is and what it is out of.

    Args:
        topk: The values of k.
    """

    def __init__(self, topk: Sequence[int]) -> None:
        if not topk or any(k < 1 for k in topk):
            raise ValueError(f"topk must have numbers from 1, not {list(topk)}.")
        self._topk = list(topk)
        # Counts of all processes up to the last sync, and of this process since then.
        self._total = torch.zeros(2, len(self._topk), dtype=torch.float64)
        self._curr = torch.zeros_like(self._total)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> TopKMeter:
        """Make the meter from ``topk``."""
        return cls(topk=config["topk"])

    def hits(self, chosen: Tensor) -> Tensor:
        """Return the hits of a batch.

        Args:
            chosen: The target, 0 or 1, of each sample at its k best classes.
        """
        raise NotImplementedError

    def out_of(self, target: Tensor, k: int) -> int | Tensor:
        """Return the largest number of hits that the batch could have."""
        raise NotImplementedError

    def update(self, model_output: Any, target: Any, **kwargs: Any) -> None:  # noqa: ANN401 - tensors
        """Add one batch of scores (samples, classes) and of classes or 0/1 targets."""
        target = maybe_convert_to_one_hot(target, model_output)
        # In full precision, because half precision has ties.
        best = model_output.float().topk(min(max(self._topk), model_output.shape[1]), dim=1).indices
        for index, k in enumerate(self._topk):
            chosen = torch.gather(target, 1, best[:, :k])
            self._curr[0, index] += self.hits(chosen).double()
            self._curr[1, index] += self.out_of(target, k)

    @property
    def value(self) -> dict[str, float]:
        """The share of hits for each k."""
        hits, possible = self._total + self._curr
        shares = torch.where(possible > 0, hits / possible.clamp(min=1), 0.0).tolist()
        return {f"top_{k}": share for k, share in zip(self._topk, shares, strict=True)}

    def reset(self) -> None:
        """Forget all batches."""
        self._total.zero_()
        self._curr.zero_()

    def sync_state(self) -> None:
        """Combine the counts of all processes."""
        self._total += all_reduce_sum(self._curr)
        self._curr.zero_()

    def get_classy_state(self) -> dict[str, Any]:
        """Return the counts."""
        return {
            "name": self.name,
            "top_k": self._topk,
            "total": self._total.clone(),
            "curr": self._curr.clone(),
        }

    def set_classy_state(self, state: Mapping[str, Any]) -> None:
        """Restore the counts, if they are of the same k."""
        if (state["name"], list(state["top_k"])) != (self.name, self._topk):
            raise ValueError(
                f"The state is of {state['name']} {state['top_k']}, the meter is {self.name} "
                f"{self._topk}."
            )
        self._total, self._curr = state["total"].clone(), state["curr"].clone()


class AccuracyMeter(TopKMeter):
    """The share of samples with a target among their k best classes, as ``top_<k>``."""

    @property
    def name(self) -> str:
        """The name in logs and files."""
        return "accuracy"

    def hits(self, chosen: Tensor) -> Tensor:
        return chosen.amax(1).sum()

    def out_of(self, target: Tensor, k: int) -> int | Tensor:
        return target.shape[0]


class PrecisionAtKMeter(TopKMeter):
    """The share of targets among the k best classes, as ``top_<k>``."""

    @property
    def name(self) -> str:
        """The name in logs and files."""
        return "precision_at_k"

    def hits(self, chosen: Tensor) -> Tensor:
        return chosen.sum()

    def out_of(self, target: Tensor, k: int) -> int | Tensor:
        return target.shape[0] * k


class RecallAtKMeter(TopKMeter):
    """The share of the targets that are among the k best classes, as ``top_<k>``."""

    @property
    def name(self) -> str:
        """The name in logs and files."""
        return "recall_at_k"

    def hits(self, chosen: Tensor) -> Tensor:
        return chosen.sum()

    def out_of(self, target: Tensor, k: int) -> int | Tensor:
        return target.sum()
