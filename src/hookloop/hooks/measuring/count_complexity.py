"""`CountComplexity`: count parameters, operations and activations of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from hookloop.data.portable import named_tensors
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.runs.layout import write_text

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from hookloop.engine.run import Run


class CountComplexity(Hook):
    """Count parameters, and the operations and activations of one sample's forward pass.

    They are counted in the first forward pass of the training, whatever the step does there, or,
    with ``input_shape``, in an extra one. A multiplication with its addition counts as two
    operations; activations are the outputs of the modules that have parameters of their own. They
    are recorded as ``model/parameters``, ``model/trainable_parameters``, ``model/flops`` and
    ``model/activations``, and written to ``complexity.txt``.

    Args:
        input_shape: Shape of one sample's input, without the batch: ``[3, 224, 224]``.
        file: Name of the summary in the run directory; None for none.

    Example:
        >>> CountComplexity(input_shape=[3, 32, 32]).input_shape
        (3, 32, 32)
    """

    writes = (
        "model/parameters", "model/trainable_parameters", "model/flops", "model/activations",
    )  # fmt: skip

    def __init__(
        self, input_shape: Sequence[int] | None = None, file: str | None = "complexity.txt"
    ) -> None:
        if input_shape is not None and any(size < 1 for size in input_shape):
            raise HookError(f"CountComplexity: input_shape={list(input_shape)} is not a shape.")
        self.input_shape = None if input_shape is None else tuple(input_shape)
        self.file = file
        self._is_done = False
        self._counter: Counter | None = None

    def state_dict(self) -> dict[str, object]:
        """Keep whether it has counted, so that a resumed run does not count again."""
        return {"is_done": self._is_done}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take back what `state_dict` returned."""
        self._is_done = bool(state["is_done"])

    def before_train(self, run: Run) -> None:
        if self.input_shape is None or self._is_done:
            return
        # One sample of zeros: the counts depend on shapes, not on values.
        sample = torch.zeros(1, *self.input_shape, device=run.device)
        was_training = run.model.training
        devices = [run.device] if run.device.type == "cuda" else []
        counter = Counter(run.model)
        # The extra pass must not change the training: it draws no random numbers from it, and in
        # evaluation mode batch norm keeps its statistics.
        with torch.no_grad(), torch.random.fork_rng(devices):
            run.model.eval()
            try:
                run.with_model(lambda: run.model(sample))
            finally:
                counter.close()
                run.model.train(was_training)
        self._record(run, counter, 1)

    def before_train_iter(self, run: Run) -> None:
        # Not at before_forward, which fires in evaluations too.
        if not self._is_done:
            self._counter = Counter(run.model)

    def after_forward(self, run: Run) -> None:
        if self._counter is not None:
            counter, self._counter = self._counter, None
            counter.close()
            self._record(run, counter, run.batch_size)

    def after_run(self, run: Run) -> None:
        if self._counter is not None:  # The first forward pass failed.
            self._counter.close()
            self._counter = None

    def _record(self, run: Run, counter: Counter, samples: int) -> None:
        self._is_done = True
        parameters = list(run.model.parameters())
        counts = {
            "parameters": sum(parameter.numel() for parameter in parameters),
            "trainable_parameters": sum(
                parameter.numel() for parameter in parameters if parameter.requires_grad
            ),
            "flops": counter.flops / samples,
            "activations": counter.activations / samples,
        }
        for name, count in counts.items():
            run.metrics.put(f"model/{name}", count)
        if self.file is not None and run.world.is_main:
            lines = [f"{name:<24}{count:>20,.0f}" for name, count in counts.items()]
            lines += ["", "operations of one sample, by module:", *counter.by_module(samples)]
            write_text(run.dir / self.file, "\n".join(lines) + "\n")


class Counter:
    """Counts what the modules of a model do until it is closed."""

    def __init__(self, model: nn.Module) -> None:
        self.activations = 0
        self._handles: list[RemovableHandle] = [
            module.register_forward_hook(self._add)
            for module in model.modules()
            if next(module.parameters(recurse=False), None) is not None
        ]
        self._mode = FlopCounterMode(display=False)
        # Entered by hand: the forward pass lies between two mount points, not inside a with block.
        self._mode.__enter__()  # type: ignore[no-untyped-call]

    @property
    def flops(self) -> int:
        """All operations so far."""
        return self._mode.get_total_flops()

    def by_module(self, samples: int) -> list[str]:
        """List the modules with their operations."""
        counts = {
            name: sum(operations.values())
            for name, operations in self._mode.get_flop_counts().items()
        }
        return [f"{name:<48}{count / samples:>20,.0f}" for name, count in counts.items()]

    def close(self) -> None:
        """Stop counting."""
        self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        for handle in self._handles:
            handle.remove()

    def _add(self, module: nn.Module, args: tuple[Tensor, ...], output: object) -> None:
        self.activations += sum(tensor.numel() for _, tensor in named_tensors(output, "output"))
