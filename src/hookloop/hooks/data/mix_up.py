"""`MixUp`: train on weighted means of samples."""

from __future__ import annotations

from torch import Tensor

from hookloop.data.description import describe
from hookloop.errors import HookError
from hookloop.hooks.data._batch_parts import BatchKey
from hookloop.hooks.data._mixing import Mixing


class MixUp(Mixing):
    """Train on the weighted mean of each sample and another sample of its batch.

    Inputs and targets become ``share * own + (1 - share) * other``; the share is drawn from
    Beta(alpha, alpha), once per microbatch. Classes become probabilities of classes, for a loss
    that takes them, as ``cross_entropy`` does. Validation and test are not changed; the training
    loss is higher than on samples that are not mixed. The random numbers are the hook's own and
    part of its state, so a resume repeats them.

    Args:
        classes: The number of classes; None if the targets are not classes.
        alpha: Both parameters of the Beta distribution: 0.2 mixes little, 1 evenly.
        probability: Share of the batches that are mixed.
        until: Moment of the run after which no batch is mixed: ``"90 epochs"``; None to mix to the
            end.
        inputs: Where the inputs are in a batch: an index, a key or an attribute.
        targets: Where the targets are.

    Example:
        >>> import torch
        >>> hook, swap = MixUp(classes=2), torch.tensor([1, 0])
        >>> hook.mix(torch.tensor([[0.0], [8.0]]), torch.tensor([0, 1]), 0.75, swap)
        (tensor([[2.], [6.]]), tensor([[0.7500, 0.2500], [0.2500, 0.7500]]))
    """

    def __init__(
        self,
        classes: int | None = None,
        *,
        alpha: float = 0.2,
        probability: float = 1.0,
        until: int | str | None = None,
        inputs: BatchKey = 0,
        targets: BatchKey = 1,
    ) -> None:
        super().__init__(classes, alpha, probability, until, inputs, targets)

    def mix(
        self, inputs: Tensor, targets: Tensor, share: float, order: Tensor
    ) -> tuple[Tensor, Tensor]:
        if not inputs.is_floating_point():
            raise HookError(
                f"MixUp: the inputs are {describe(inputs)}: only floating-point numbers can be "
                "mixed. Convert them in the data set, or mix their embeddings in the model."
            )
        return self.blend(inputs, share, order), self.blend(self.soft(targets), share, order)
