"""`RecordThroughput`: measure how much is trained on per second."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Literal, cast

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from hookloop.checkpoint.state.shape import Maybe, check_state, is_number
from hookloop.data.batch import pair_of
from hookloop.data.portable import named_tensors
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError
from hookloop.every import Every
from hookloop.hooks._intervals import interval_of
from hookloop.runs.policy import Machine

if TYPE_CHECKING:
    from hookloop.engine.run import Run

# In 10^12 operations per second: half precision, fp32 by way of TF32, and fp32. The first name that
# is part of the device's name counts, so a longer name stands before a shorter one.
PEAKS: dict[str, tuple[float, float, float]] = {
    "B200": (2250.0, 1100.0, 75.0),
    "H200": (989.4, 494.7, 66.9),
    "H100 NVL": (835.5, 417.8, 60.0),
    "H100 PCIe": (756.0, 378.0, 51.2),
    "H100": (989.4, 494.7, 66.9),
    "A100": (312.0, 156.0, 19.5),
    "A800": (312.0, 156.0, 19.5),
    "A6000": (154.8, 77.4, 38.7),
    "A40": (149.7, 74.8, 37.4),
    "A30": (165.0, 82.0, 10.3),
    "A10G": (70.0, 35.0, 35.0),
    "A10": (125.0, 62.5, 31.2),
    "L40S": (362.0, 183.0, 91.6),
    "L40": (181.0, 90.5, 90.5),
    "L4": (121.0, 60.5, 30.3),
    "T4": (65.0, 8.1, 8.1),
    "V100": (125.0, 15.7, 15.7),
    "RTX 4090": (165.2, 82.6, 82.6),
    "RTX 3090": (71.0, 35.6, 35.6),
    "MI300X": (1307.4, 653.7, 163.4),
}
NO_BFLOAT16 = ("T4", "V100")


def peak_of(device: str, dtype: torch.dtype, *, uses_tf32: bool) -> float | None:
    """Return the operations per second of a device; None if they are not known.

    Args:
        device: The name that torch gives it.
        dtype: In which numbers matrices are multiplied.
        uses_tf32: Whether torch may multiply matrices of fp32 with less precision.

    >>> peak_of("NVIDIA A100-SXM4-80GB", torch.bfloat16, uses_tf32=False)
    312000000000000.0
    """
    name = next((name for name in PEAKS if name in device), None)
    if name is None or (dtype == torch.bfloat16 and name in NO_BFLOAT16):
        return None
    half, tf32, full = PEAKS[name]
    if dtype in (torch.float16, torch.bfloat16):
        return half * 1e12
    if dtype == torch.float32:
        return (tf32 if uses_tf32 else full) * 1e12
    return None


def peak_in_use(device: torch.device, dtype: torch.dtype) -> tuple[str, float | None]:
    """Return the name of a device, and its operations per second, or None."""
    if device.type != "cuda":
        return device.type, None
    name = torch.cuda.get_device_name(device)
    uses_tf32 = torch.get_float32_matmul_precision() != "highest"
    return name, peak_of(name, dtype, uses_tf32=uses_tf32)


_log = logging.getLogger("hookloop")

Count = Callable[[object], "float | Tensor"]


class RecordThroughput(Hook):
    """Record ``train/samples_per_second`` and ``train/time_per_sample``, over all ranks.

    The time includes everything except validation: waiting for data and hooks count too. Nothing
    waits for the GPU: over an interval its queue evens out. With ``count`` there is
    ``train/tokens_per_second``; with ``flops``, ``train/flops_per_second`` and the share of the
    peak, ``train/mfu``. The first rank measures: where samples differ in length, those of the other
    ranks are taken to be like its own.

    Args:
        every: Interval in iterations or time; the rest of an epoch is recorded at its end.
        count: ``"tokens"`` counts the positions of ``input_ids``, or else of the first batch of
            sequences of whole numbers, padding included; or a function that returns the tokens of a
            batch.
        flops: Operations for one sample, forward and backward; ``"auto"`` counts them with torch's
            ``FlopCounterMode`` in the first update.
        peak: Operations per second that one device can do at most; ``"auto"`` looks them up for the
            GPU and the precision. If they are not known, there is no ``train/mfu``.

    Example:
        >>> RecordThroughput(every=100).writes
        ('train/samples_per_second', 'train/time_per_sample')
        >>> RecordThroughput(count="tokens", flops="auto", peak=312e12).writes[2:]
        ('train/tokens_per_second', 'train/flops_per_second', 'train/mfu')
    """

    ranks = "first"
    priority = Priority.VERY_HIGH  # Before hooks that replace the batch.
    draws_random_numbers = False

    def __init__(
        self,
        every: Every | int | str = 50,
        *,
        count: Literal["tokens"] | Count | None = None,
        flops: Literal["auto"] | float | None = None,
        peak: Literal["auto"] | float = "auto",
    ) -> None:
        self.every = interval_of(self, every)
        self.count = _count_of(count)
        _check_number("flops", flops)
        _check_number("peak", peak)
        self.flops, self.peak = flops, peak
        tokens = ["train/tokens_per_second"] if count is not None else []
        use = ["train/flops_per_second", "train/mfu"] if flops is not None else []
        rates = ["train/samples_per_second", "train/time_per_sample", *tokens, *use]
        self.writes = tuple(map(Machine, rates))
        self._per_sample = None if flops == "auto" else flops
        self._peak: float | None = None
        self._counter: FlopCounterMode | None = None
        self._dtype = torch.float32
        self._since = perf_counter()
        self._paused = 0.0
        self._samples = 0
        self._tokens: float | Tensor = 0
        self._iter = -1
        self._counted: set[int] = set()

    def state_dict(self) -> dict[str, object]:
        return {"flops": self._per_sample}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        if self.flops == "auto" and state:  # Checkpoints of an earlier version hold nothing.
            check_state(state, {"flops": Maybe(is_number)})
            self._per_sample = cast("float | None", state["flops"])

    def before_train(self, run: Run) -> None:
        self._peak = None

    def before_train_epoch(self, run: Run) -> None:
        self._restart()

    def before_train_iter(self, run: Run) -> None:
        if self.flops == "auto" and self._per_sample is None and self._counter is None:
            self._counter = FlopCounterMode(display=False)
            # By hand: the passes lie between two mount points, not inside a with block.
            self._counter.__enter__()  # type: ignore[no-untyped-call]

    def before_forward(self, run: Run) -> None:
        if run.phase != "train":
            return
        if self.flops is not None and self._peak is None:
            self._peak = self._find_peak(run)
        if self._iter != run.progress.iter:
            self._iter = run.progress.iter
            self._counted.clear()
            if run.world.cuts_batches:
                self._samples += _samples_of_all_ranks(run)
        # Each microbatch counts once, also if several optimizers train on it. By id, because
        # batches need not be hashable; within an iteration they are all alive.
        if id(run.batch) not in self._counted:
            self._counted.add(id(run.batch))
            if self.count is not None:
                self._tokens = self._tokens + self.count(run.batch) * _ranks_per_sample(run)
            if not run.world.cuts_batches:
                self._samples += run.batch_size

    def after_backward(self, run: Run) -> None:
        if self._counter is not None:
            self._per_sample = self._counter.get_total_flops() / max(1, run.batch_size)
            self._close()
            if not self._per_sample:
                _log.warning(
                    "RecordThroughput: torch counts no operations of this model, perhaps because "
                    "it is compiled: give flops= as a number."
                )
            self._restart()  # The counting itself took time.

    def after_train_iter(self, run: Run) -> None:
        self._record(run)

    def after_train_epoch(self, run: Run) -> None:
        self._record(run)

    def before_val(self, run: Run) -> None:
        self._paused = perf_counter()

    def after_val(self, run: Run) -> None:
        self._since += perf_counter() - self._paused

    def after_run(self, run: Run) -> None:
        self._close()  # The first update may have failed.

    def _close(self) -> None:
        if self._counter is not None:
            counter, self._counter = self._counter, None
            counter.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _find_peak(self, run: Run) -> float:
        """Return the operations per second of one device; 0 if they are not known."""
        if self.peak != "auto":
            return self.peak
        kind = run.device.type
        dtype = next((p.dtype for p in run.model.parameters()), torch.float32)
        if torch.is_autocast_enabled(kind):  # This point lies within the context of precision.
            dtype = torch.get_autocast_dtype(kind)
        name, peak = peak_in_use(run.device, dtype)
        if peak is None:
            _log.warning(
                "RecordThroughput: what '%s' can compute with %s is not known, so there is no "
                "train/mfu: give peak= in operations per second.", name, dtype,
            )  # fmt: skip
        return peak or 0.0

    def _record(self, run: Run) -> None:
        seconds, samples = perf_counter() - self._since, self._samples
        if samples and seconds > 0:
            run.metrics.put("train/samples_per_second", samples / seconds)
            run.metrics.put("train/time_per_sample", seconds / samples)
            if self.count is not None:
                run.metrics.put("train/tokens_per_second", self._tokens / seconds)
            if self._per_sample:
                rate = self._per_sample * samples / seconds
                run.metrics.put("train/flops_per_second", rate)
                if self._peak:
                    run.metrics.put("train/mfu", rate / (self._peak * run.world.size))
        self._restart()

    def _restart(self) -> None:
        self._since, self._samples, self._tokens = perf_counter(), 0, 0


def count_tokens(batch: object) -> int:
    """Count the positions of all sequences of a batch, padding included.

    >>> count_tokens({"input_ids": torch.zeros(2, 5, dtype=torch.long), "labels": torch.zeros(2)})
    10
    """
    if isinstance(batch, Mapping) and isinstance(found := batch.get("input_ids"), Tensor):
        return found.numel()
    inputs = pair[0] if (pair := pair_of(batch)) is not None else batch
    for _, tensor in named_tensors(inputs, "batch"):
        is_whole = not (tensor.is_floating_point() or tensor.is_complex())
        if tensor.ndim == 2 and is_whole:
            return tensor.numel()
    raise HookError(
        "RecordThroughput: count='tokens' finds neither 'input_ids' nor a batch of sequences of "
        "whole numbers: give a function of the batch, count=lambda batch: batch[0].shape[1] * 8."
    )


def _count_of(count: str | Count | None) -> Count | None:
    if count is None or callable(count):
        return count
    if count != "tokens":
        raise HookError(f"RecordThroughput: count={count!r}: write 'tokens' or give a function.")
    return count_tokens


def _check_number(name: str, value: str | float | None) -> None:
    if isinstance(value, str) and value != "auto":
        raise HookError(f"RecordThroughput: {name}={value!r}: write 'auto' or a number.")
    if not isinstance(value, str) and value is not None and not value > 0:
        raise HookError(f"RecordThroughput: {name} must be positive, not {value}.")


def _ranks_per_sample(run: Run) -> float:
    """Return for how many samples of all ranks one of this rank counts."""
    if not run.world.cuts_batches:
        return 1
    shares = (run.train_data.shares() if run.train_data is not None else None) or []
    own = sum(one.own for one in shares)
    return _samples_of_all_ranks(run) / own if own else 0


def _samples_of_all_ranks(run: Run) -> int:
    """Return how many samples all ranks train on in this iteration."""
    shares = (run.train_data.shares() if run.train_data is not None else None) or []
    shares = shares[:: max(1, len(run.world.leaves))]  # Logical ranks read the same batches.
    # Where each rank has data of its own, the others are taken to have as many samples.
    return sum(one.own * run.world.size if one.total is None else one.total for one in shares)
