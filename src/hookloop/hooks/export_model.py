"""`ExportModel`: write the trained model for other programs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

import torch
from torch.utils._pytree import tree_map, tree_map_only

from hookloop.core.hook import Hook, Priority
from hookloop.data.batch import is_pair, size_of, to_device
from hookloop.errors import HookError, ModelError, nearest
from hookloop.runs.files import drafted, make_folder

if TYPE_CHECKING:
    from hookloop.core.run import Run

Format = Literal["safetensors", "torchscript", "export"]
FORMATS: tuple[str, ...] = get_args(Format)
SUFFIXES = {"safetensors": ".safetensors", "torchscript": ".pt", "export": ".pt2"}


@dataclass(frozen=True)
class Example:
    """The inputs that a model is traced with."""

    args: tuple[object, ...]
    kwargs: dict[str, object]

    @classmethod
    def of(cls, inputs: object) -> Example:
        """Read inputs as the engine passes them: a mapping by name, a sequence by position."""
        if isinstance(inputs, Mapping):
            return cls((), {str(name): value for name, value in inputs.items()})
        return cls(tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,), {})

    def shapes(self) -> dict[str, object] | tuple[object, ...]:
        """Return dynamic shapes: any number of samples, if the model allows it."""

        def batch(value: object) -> object:
            free = isinstance(value, torch.Tensor) and value.ndim > 0
            return {0: torch.export.Dim.AUTO} if free else None

        return tree_map(batch, self.kwargs or self.args)  # type: ignore[no-any-return]


class ExportModel(Hook):
    """Write the trained model, in evaluation mode and on the CPU, when the training is over.

    ``safetensors`` holds the weights alone, ``torchscript`` a traced program and ``export`` a
    program of ``torch.export``; the last two are traced with the inputs of the last batch, and
    take any number of samples if the model does.

    Args:
        format: ``"safetensors"``, ``"torchscript"`` or ``"export"``.
        file: Its name in the run directory; by default ``model`` with the format's ending.
        inputs: ``inputs(run)`` returns the example to trace with, instead of the last batch.

    Example:
        >>> ExportModel("export").file
        'model.pt2'
    """

    ranks = "first"
    priority = Priority.VERY_LOW

    def __init__(
        self,
        format: Format = "safetensors",
        file: str | None = None,
        inputs: Callable[[Run], object] | None = None,
    ) -> None:
        if format not in FORMATS:
            raise HookError(
                f"ExportModel: format={format!r}: write {', '.join(FORMATS)}."
                f"{nearest(str(format), FORMATS)}"
            )
        self.format = format
        self.file = file or f"model{SUFFIXES[format]}"
        self.inputs = inputs or _inputs_of

    def after_train(self, run: Run) -> None:
        try:
            self._write(run)
        except OSError as error:
            # The training is done, and a full disk must not make it a failed run. Any other error,
            # such as a model that cannot be traced, is the user's to fix and is raised.
            run.plan.disable(self, "after_train", error)

    def _write(self, run: Run) -> None:
        path = run.dir / self.file
        make_folder(path.parent, run.dir)
        # A copy, because the model of the run stays on its device and in its mode.
        model = copy.deepcopy(run.model).cpu().eval()
        if self.format == "safetensors":
            from safetensors.torch import save_model

            with drafted(path) as draft:
                draft.touch()  # Raises OSError if it cannot be written; safetensors does not.
                mode = draft.stat().st_mode
                save_model(model, str(draft))
                draft.chmod(mode)  # safetensors ignores the umask: only the owner could read it.
            return
        example = Example.of(to_device(self.inputs(run), torch.device("cpu")))
        # Tracing runs the model, which may draw random numbers.
        with torch.random.fork_rng(devices=[]), torch.no_grad(), drafted(path) as draft:
            self._trace(model, example, draft)

    def _trace(self, model: torch.nn.Module, example: Example, path: Path) -> None:
        try:
            if self.format == "export":
                program = torch.export.export(
                    model, example.args, example.kwargs, dynamic_shapes=example.shapes()
                )
                torch.export.save(program, path)
                return
            with warnings.catch_warnings():
                # torch deprecates TorchScript; who asks for the format knows that.
                warnings.simplefilter("ignore", DeprecationWarning)
                traced = torch.jit.trace(  # type: ignore[no-untyped-call]
                    model,
                    example.args or None,
                    example_kwarg_inputs=example.kwargs or None,
                    strict=False,  # A model may return a mapping.
                )
                torch.jit.save(traced, str(path))
        except (TypeError, RuntimeError) as error:
            # torch reports a full disk as a RuntimeError. Writing a megabyte raises the system's
            # own OSError in that case, which is clearer.
            with path.open("ab") as file:
                file.write(bytes(1 << 20))
            raise ModelError(
                f"ExportModel: the model cannot be traced as {self.format} with the inputs of the "
                f"last batch; give inputs=, or format='safetensors'. {error}"
            ) from error


def _inputs_of(run: Run) -> object:
    batch = run.batch
    inputs = cast("Sequence[object]", batch)[0] if is_pair(batch) else batch
    if size_of(inputs) != 1:
        return inputs
    # Repeat a single sample: torch.export makes a size of one a fixed size of the program.
    return tree_map_only(torch.Tensor, lambda tensor: tensor.repeat_interleave(2, 0), inputs)
