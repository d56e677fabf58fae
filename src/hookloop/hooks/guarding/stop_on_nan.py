"""`StopOnNaN`: end a training whose numbers are no longer finite, and report the first one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from hookloop.data.portable import named_tensors, write_portable
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks._intervals import interval_of
from hookloop.hooks.guarding._guarding import first_damaged, gradients_of, largest_of

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.requests import Rewind

Label = TypeVar("Label")


class FiniteCheck(Generic[Label]):
    """Labelled scalars that wait on their device until they are checked together.

    >>> seen = FiniteCheck[str]()
    >>> for step, number in enumerate((1.0, float("inf"), float("nan"))):
    ...     seen.add(f"step {step}", torch.tensor(number))
    >>> seen.take_first_nonfinite(), seen.take_first_nonfinite()
    (('step 1', inf), None)
    """

    def __init__(self) -> None:
        self._labels: list[Label] = []
        self._values: list[Tensor] = []

    def add(self, label: Label, value: Tensor) -> None:
        """Add a detached scalar; nothing is read from its device."""
        self._labels.append(label)
        self._values.append(value)

    def take_first_nonfinite(self) -> tuple[Label, float] | None:
        """Read all scalars and forget them; return the first that is NaN or infinite, if any."""
        # Forgotten in any case, so that memory does not grow and nothing is reported twice.
        labels, values = self._labels, self._values
        self._labels, self._values = [], []
        if not values:
            return None
        numbers = torch.stack([value.to(values[0].device) for value in values])
        nonfinite = numbers.isfinite().logical_not()
        # One flag is read in the usual case; the labels are searched only when there is a problem.
        if not nonfinite.any():
            return None
        first = nonfinite.tolist().index(True)
        return labels[first], float(numbers[first])


PHASES = ("train", "val", "test")


class Location(NamedTuple):
    """Where a number was seen; an index counts from 0, an iteration from 1."""

    iter: int
    index_in_epoch: int
    microbatch: int
    stream: str
    phase: str

    def __str__(self) -> str:
        batch = f"{self.stream} batch {self.index_in_epoch}"
        if self.phase != "train":
            return f"after iteration {self.iter} ({batch})"
        return f"in iteration {self.iter} ({batch} of the epoch, microbatch {self.microbatch})"


NOWHERE = Location(-1, 0, 0, "", "")


class StopOnNaN(Hook):
    """Look for NaN and infinity in the loss, outputs and gradients, and report the first.

    The numbers stay on the device and are read once per interval, at the end, and before every
    checkpoint, so that none is written with damaged weights: the run fails instead.
    With ``every=1`` the run ends before the optimizer has changed the weights.

    On many ranks, each looks at its own part of the data, and at the interval all learn what one
    has found. With an interval in time, only the first rank reads its numbers at the interval;
    those of the others are read after each epoch.

    Args:
        loss: Whether to check the loss of every batch.
        outputs: Whether to check all tensors of the output.
        gradients: Whether to check the gradients, in the iterations of the interval.
        every: Interval at which the numbers are read, in iterations or time.
        action: ``"raise"`` fails with a `FloatingPointError`; ``"stop"`` ends the run normally,
            best with ``every=1``, because the weights can then still be saved.
        dump: Whether to write batch, output and gradients into the run directory, as
            ``nan_iter_8.pt``; a rank other than the first adds its number. The batches of an
            interval then stay in memory until its numbers are read.
        phases: Where to look: ``"train"``, ``"val"``, ``"test"``.

    Example:
        >>> StopOnNaN(gradients=True, every=1).every
        Every(count=1, unit='iters')
    """

    takes_part_in_training = True

    def __init__(
        self,
        *,
        loss: bool = True,
        outputs: bool = False,
        gradients: bool = False,
        every: Every | int | str = 10,
        action: Literal["raise", "stop"] = "raise",
        dump: bool = False,
        phases: Sequence[str] = ("train",),
    ) -> None:
        if not (loss or outputs or gradients):
            raise HookError("StopOnNaN checks nothing: give loss, outputs or gradients.")
        if action not in ("raise", "stop"):
            raise HookError(f"StopOnNaN: action='{action}': write 'raise' or 'stop'.")
        if not phases or set(phases) - set(PHASES):
            raise HookError(f"StopOnNaN: phases={list(phases)}: write some of {', '.join(PHASES)}.")
        self.loss = loss
        self.outputs = outputs
        self.gradients = gradients
        self.every = interval_of(self, every)
        self.action = action
        self.dump = dump
        self.phases = tuple(phases)
        self._at_once = self.every == Every(1, "iters")
        self._by_clock = self.every.unit == "seconds"
        self.guards_by = "stopping" if self._at_once else "failing"
        self._seen = FiniteCheck[tuple[str, Location, dict[str, object]]]()
        self._location = NOWHERE
        self._parts: dict[str, object] = {}
        self._skips_update = False
        self._damage = ""

    def after_loss(self, run: Run) -> None:
        if run.phase not in self.phases:
            return
        self._location = self._next_location(run)
        if self.dump:
            outputs = {name: part.detach() for name, part in named_tensors(run.output, "output")}
            self._parts = {"batch": run.batch, "outputs": outputs, "loss": run.loss}
        if self.loss and run.loss is not None:
            self._keep("the loss", run.loss.detach())
        if self.outputs:
            for name, tensor in named_tensors(run.output, "output"):
                # One number per tensor, which is NaN or infinite if any of the tensor is.
                if tensor.is_floating_point() and tensor.numel():
                    self._keep(name, tensor.detach().abs().max())
        # Many ranks agree at points where each of them comes: before the update, or after all.
        if self._at_once and run.world.is_alone:
            self._skips_update |= self._check(run) and run.phase == "train"

    def before_update(self, run: Run) -> None:
        if self.gradients and "train" in self.phases:
            for name, norm in largest_of(gradients_of(run.model)).items():
                self._keep(f"the gradient of '{name}'", norm)
            if self._at_once and run.world.is_alone:
                self._skips_update |= self._check(run)
        if self._at_once and not run.world.is_alone:
            self._skips_update |= self._check(run)
        # A stop takes effect after the iteration, and its update would damage the weights.
        # Optimizers skip parameters without a gradient.
        if self._skips_update:
            run.model.zero_grad(set_to_none=True)
            run.will_skip = True
            self._skips_update = False

    def after_train_iter(self, run: Run) -> None:
        self._check(run, alone=self._by_clock)

    def after_rewind(self, run: Run, rewind: Rewind) -> None:
        self._seen, self._damage = FiniteCheck(), ""  # All of it came after the checkpoint.

    def after_train_epoch(self, run: Run) -> None:
        if self._by_clock:  # What the other ranks have kept.
            self._check(run)

    def after_val(self, run: Run) -> None:
        self._check(run)
        self._location = NOWHERE  # So that the next evaluation counts its batches from 0.

    def before_save_checkpoint(self, run: Run, checkpoint: object) -> None:
        self._check(run)
        if self._damage and run.outcome.status == "running":
            raise FloatingPointError(f"no checkpoint is written: {self._damage}")

    after_test = after_val

    def after_train(self, run: Run) -> None:
        self._check(run)

    def _next_location(self, run: Run) -> Location:
        last, progress = self._location, run.progress
        if run.phase != "train":
            continues = (last.phase, last.stream) == (run.phase, run.stream)
            index = last.index_in_epoch + 1 if continues else 0
            return Location(progress.iter, index, 0, run.stream, run.phase)
        microbatch = last.microbatch + 1 if last.iter == progress.iter + 1 else 0
        index = progress.iter_in_epoch
        return Location(progress.iter + 1, index, microbatch, run.stream, run.phase)

    def _keep(self, name: str, value: Tensor) -> None:
        # Nothing is read here: that would make the host wait for the device in every iteration.
        self._seen.add((name, self._location, self._parts), value)

    def _check(self, run: Run, *, alone: bool = False) -> bool:
        """Read the numbers kept so far; return whether one is not finite and the run must end.

        Args:
            run: The run.
            alone: Whether the other ranks are not here to agree on what was found.
        """
        if run._internals.requests.rewind is not None:  # The run goes back to before what was seen.
            self._seen = FiniteCheck()
            return False
        found = self._read(run)
        is_shared = not (alone or run.world.is_alone or run._internals.ranks.is_broken)
        if is_shared:
            found = next((one for one in run.gather(found) if one is not None), None)
        if found is None:
            return False
        message, damaged = found
        if self.action == "raise":
            raise FloatingPointError(message)
        # Remembered for the save that a stopped run usually ends with.
        self._damage = message if damaged else ""
        run.stop(message, everywhere=is_shared)
        return True

    def _read(self, run: Run) -> tuple[str, bool] | None:
        """Read the numbers of this rank; describe the first that is not finite.

        Returns:
            The description, and whether the weights are damaged; None if all are finite.
        """
        first = self._seen.take_first_nonfinite()
        if first is None:
            return None
        (name, location, parts), value = first
        rank = "" if run.world.is_alone else f" on rank {run.world.rank}"
        damaged = first_damaged(run.model)
        message = f"{name} is {value} {location}{rank}; the weights are " + (
            f"damaged, starting with '{damaged}'" if damaged else "still finite"
        )
        if self.dump:
            of_rank = "" if run.world.is_main else f"_rank_{run.world.rank}"
            path = run.dir / f"nan_iter_{location.iter}{of_rank}.pt"
            kept = {
                "found": message,
                **location._asdict(),
                **parts,
                "gradients": gradients_of(run.model),
            }
            write_portable(path, kept)
            message += f"; see '{path}'"
        return message, damaged is not None
