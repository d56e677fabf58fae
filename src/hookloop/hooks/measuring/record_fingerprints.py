"""`RecordFingerprints`: what the training was, bit by bit, in a few numbers of an iteration."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from hookloop.checkpoint.shards.dtensors import is_sharded
from hookloop.checkpoint.state.digest import as_text, digests
from hookloop.checkpoint.state.shape import check_state, is_count, is_text
from hookloop.data.mixing.mixture import Mixture
from hookloop.data.portable import named_tensors
from hookloop.data.random.states import GeneratorStates
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, LinkError
from hookloop.every import Every
from hookloop.hooks._intervals import interval_of
from hookloop.runs.fingerprints import CHAIN, FIRST, PREVIOUS, cut_fingerprints, link
from hookloop.runs.interventions import append_lines
from hookloop.runs.layout import RunDir
from hookloop.runs.records import to_json

if TYPE_CHECKING:
    from hookloop.data.stream import Stream
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

SPARE = 64
"""Batches whose samples are kept beyond those that workers have in advance."""


class RecordFingerprints(Hook):
    """Write ``fingerprints.jsonl``: what an iteration was, bit by bit, in a few short numbers.

    A line has the bits of the loss, and digests of the weights, the gradients before the update,
    the buffers, the random generators, and the numbers of the samples. Two trainings that are equal
    to the last bit have the same lines, whether the model is sharded or whole; the first line that
    differs says between which iterations they part, and in what. Each line is chained to the one
    before. The last link, the root, is in ``summary.json`` and shown at the end: a note of it
    proves later that no line was changed.

    It finds errors, not fraud: other tensors with the same digest can be made on purpose.

    Args:
        every: Interval, in iterations.
        optimizers: Whether the states of the optimizers are digested, too, such as momentum.

    Example:
        >>> RecordFingerprints(every=10).every
        Every(count=10, unit='iters')
    """

    priority = Priority.LOWEST  # After hooks that change gradients, and after those that save.
    draws_random_numbers = False

    def __init__(self, every: Every | int | str = 50, optimizers: bool = False) -> None:
        self.every = interval_of(self, every)
        if self.every.unit != "iters":
            raise HookError(f"RecordFingerprints: give iterations, not '{self.every}'.")
        self.optimizers = optimizers
        self._lines: int | None = None
        self._chain = FIRST
        self._waiting = ""
        self._is_open = False
        self._has_failed = False
        self._gradients: list[Tensor] = []

    def state_dict(self) -> dict[str, object]:
        return {"lines": self._lines or 0, "chain": self._chain}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(state, {"lines": is_count, "chain": is_text})
        if not self._is_open:  # A run that goes back keeps the lines of the branch that it leaves.
            self._lines, self._chain = cast("int", state["lines"]), cast("str", state["chain"])

    def before_train(self, run: Run) -> None:
        if run.world.is_main:
            self._cut(run)
        self._is_open = True
        run._internals.root = self._chain if self._lines else None
        for stream in run.train_data.parts() if run.train_data is not None else ():
            ahead = getattr(stream.data, "num_workers", 0) or 0
            ahead *= getattr(stream.data, "prefetch_factor", None) or 2
            stream.note_indices(SPARE + ahead + 4 * run.accumulate)

    def before_update(self, run: Run) -> None:
        # With several optimizers there are several updates in an iteration.
        found = {n: p.grad for n, p in _parameters(run).items() if p.grad is not None}
        self._gradients.append(digests(found, is_first=run.world.is_main).sum())

    def after_train_iter(self, run: Run) -> None:
        line = self._describe(run)
        if run.world.is_main:
            self._add(run, line)

    def after_run(self, run: Run) -> None:
        self._write(run)
        self._is_open = False
        self._gradients = []

    def _cut(self, run: Run) -> None:
        """Drop the lines that are written again; those of another run are not in this file."""
        file = RunDir(run.dir).fingerprints_file
        if run._internals.is_from_other:
            self._lines = self._lines or 0
            return
        kept, last = cut_fingerprints(file, self._lines, run.progress.iter)
        if self._lines and (kept, last) != (self._lines, self._chain):
            _log.warning(
                "'%s' has %d of the %d lines that were there at the checkpoint, or others: the "
                "chain of its lines is broken there.",
                file,
                kept,
                self._lines,
            )
        if self._lines is None and last is not None:
            self._chain = last
        self._lines = kept

    # --- one line ---------------------------------------------------------------------------------

    def _describe(self, run: Run) -> dict[str, object]:
        """Return what this iteration was; all ranks take part, in one reduction."""
        is_first = run.world.is_main
        # With logical ranks all processes have the same buffers and random numbers.
        is_counted = is_first or not run.world.logical
        names, numbers = ["weights", "buffers"], []
        numbers.append(digests(_parameters(run), is_first=is_first).sum())
        rank = "" if run.world.is_alone or run.world.logical else f"{run.world.rank} "
        buffers = {
            name if is_sharded(one) else f"{rank}{name}": one
            for name, one in run.model.named_buffers()
        }
        numbers.append(digests(buffers, is_first=is_counted).sum())
        if self.optimizers:
            names.append("optimizers")
            numbers.append(digests(_states(run), is_first=is_first).sum())
        if gradients := self._gradients:
            names.append("gradients")
            several = [(2 * place + 1) * one for place, one in enumerate(gradients)]
            numbers.append(several[0] if len(several) == 1 else torch.stack(several).sum())
            self._gradients = []
        loss = run.loss
        if isinstance(loss, Tensor) and loss.numel() == 1 and not run.world.logical:
            names.append("loss")
            numbers.append(_loss_bits(loss, rank).to(numbers[0].device))
        own = {name: _hash(rank.encode() + one) for name, one in _generators(run)}
        if not is_counted:
            own = dict.fromkeys(own, 0)
        together = torch.stack(numbers).cpu()
        together = torch.cat([together, torch.tensor([*own.values()], dtype=torch.int64)])
        texts = [as_text(one) for one in cast("list[int]", run.reduce(together, "sum").tolist())]
        found: dict[str, object] = dict(zip(names, texts, strict=False))
        return {
            "iter": run.progress.iter,
            "branch": sum(change["how"] == "rewound" for change in run._internals.changes),
            "loss": found.get("loss"),
            "weights": found["weights"],
            "gradients": found.get("gradients"),
            "optimizers": found.get("optimizers"),
            "buffers": found["buffers"],
            "generators": dict(zip(own, texts[len(names) :], strict=True)),
            "samples": hash_of_samples(run),
        }

    def _add(self, run: Run, line: dict[str, object]) -> None:
        line[PREVIOUS] = self._chain
        line[CHAIN] = run._internals.root = self._chain = link(line)
        self._lines = (self._lines or 0) + 1
        self._waiting += f"{to_json(line)}\n"
        self._write(run)

    def _write(self, run: Run) -> None:
        """Write what waits. A file that cannot be written ends no training; the lines wait."""
        if not self._waiting:
            return
        file = RunDir(run.dir).fingerprints_file
        try:
            append_lines(file, self._waiting)
        except (OSError, LinkError) as error:
            if not self._has_failed:
                _log.warning(
                    "'%s' cannot be written: %s. The next line will try again.", file, error
                )
            self._has_failed = True
        else:
            self._waiting, self._has_failed = "", False


def _parameters(run: Run) -> dict[str, Tensor]:
    """Return the parameters of the model, and others that are trained, such as those of a loss."""
    found: dict[str, Tensor] = dict(run.model.named_parameters())
    known = {id(one) for one in found.values()}
    for name, optimizer in run.optimizers.items():
        for number, group in enumerate(optimizer.param_groups):
            for place, one in enumerate(group["params"]):
                if id(one) not in known:
                    found[f"{name}[{number}][{place}]"] = one
    return found


def _states(run: Run) -> dict[str, Tensor]:
    """Return the tensors in the states of the optimizers, by the names of their parameters."""
    names = {id(one): name for name, one in _parameters(run).items()}
    return {
        f"{optimizer} {names[id(parameter)]} {key}": one
        for optimizer, held in run.optimizers.items()
        for parameter, state in held.state.items()
        if id(parameter) in names
        for key, one in named_tensors(state, "")
    }


def _loss_bits(loss: Tensor, rank: str) -> Tensor:
    """Return the bits of the loss in double precision; of a rank among others, a digest of it."""
    value = loss.detach().reshape(())
    return digests({f"{rank}loss": value})[0] if rank else value.double().view(torch.int64)


def _hash(state: bytes) -> int:
    return int.from_bytes(blake2b(state, digest_size=8).digest(), "little", signed=True)


def _generators(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the states of the generators from which the training draws, by name."""
    states = GeneratorStates.now(gpus=False).state
    _, words, gauss = cast("tuple[int, tuple[int, ...], float | None]", states["python"])
    yield "python", np.array(words, np.uint64).tobytes() + repr(gauss).encode()
    kind, keys, *rest = cast("tuple[object, ...]", states["numpy"])
    yield "numpy", cast("Tensor", keys).numpy().tobytes() + repr((kind, rest)).encode()
    yield "torch", cast("Tensor", states["torch"]).numpy().tobytes()
    if run.device.type == "cuda":
        yield "cuda", torch.cuda.get_rng_state(run.device).numpy().tobytes()
    own = run.train_data.generators() if run.train_data is not None else []
    if own:
        yield "data", b"".join(one.get_state().numpy().tobytes() for one in own)


def hash_of_samples(run: Run) -> str | None:
    """Return a hash of the samples of this iteration, over all ranks, by number or by position."""
    data = run.train_data
    if data is None:
        return None
    parts = {one.name: one for one in data.parts()}
    taken = (data.position - 1) % run.accumulate + 1 if data.position else 0
    if isinstance(data, Mixture) and not data.way.is_zipped:
        counts = {one.name: list(data.labels).count(name) for name, one in data.streams.items()}
    else:
        counts = dict.fromkeys(parts, taken)
    text = [[name, _of_stream(parts[name], count)] for name, count in counts.items() if count]
    return blake2b(repr(text).encode(), digest_size=8).hexdigest()


def _of_stream(stream: Stream, count: int) -> object:
    at = stream.at
    known = stream.noted_indices(count)
    if known is None:
        return [at.passes, at.batches, count]
    return [
        [_plain(one) for one in group] if isinstance(group, Iterable) else [_plain(group)]
        for group in known
    ]


def _plain(index: object) -> object:
    return index.item() if isinstance(index, np.generic | Tensor) else index


def loss_of(text: str) -> float:
    """Return the loss of a line of one process, from its bits.

    >>> loss_of("3ff8000000000000")
    1.5
    """
    return cast("float", struct.unpack(">d", bytes.fromhex(text))[0])
