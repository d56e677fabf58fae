"""Measure the parts of an iteration: ``python -m bench.parts``.

The everyday set with an average of weights, once by hand and once with hookloop. Each statement,
each hook and the time between them is measured separately. The cost of reading the clock is
subtracted.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from time import perf_counter, thread_time_ns

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor, nn

from bench import ours
from bench.tiny import EMA_SHARE, Case, Perceptron, Work, make_data, parameters
from hookloop import Hook, Run, Trainer
from hookloop.engine.hook import Call
from hookloop.update.objective import forward_inputs, loss_from
from hookloop.update.update import Update

ITERATIONS = 6400
ALL = "the whole iteration"

Times = dict[str, list[int]]


def make_work() -> Work:
    """Return the everyday set with the average of weights."""
    case = Case("parts", everyday=True, ema=True)
    model, data = Perceptron(lambda: None), make_data(ITERATIONS)
    return Work(case, model, ITERATIONS, data, Path(tempfile.mkdtemp()))


def timed(function: Callable[..., object], kept: list[int]) -> Callable[..., object]:
    """Return the function wrapped so that its times are kept."""

    def measure(*args: object) -> object:
        begin = thread_time_ns()
        result = function(*args)
        kept.append(thread_time_ns() - begin)
        return result

    return measure


class Batches:
    """The batches, with the time that each took to load."""

    def __init__(self, work: Work, times: Times) -> None:
        self.loader, self.times = work.loader(), times

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[list[Tensor]]:
        next_batch = timed(iter(self.loader).__next__, self.times["data"])
        for _ in range(len(self)):
            self.times[ALL].append(thread_time_ns())
            yield next_batch()  # type: ignore[misc]


def by_hand(work: Work) -> Times:
    """Time each statement of the hand-written loop."""
    times: Times = defaultdict(list)
    model, optimizer, loss_of = work.model, work.optimizer(), nn.MSELoss()
    schedule = work.schedule(optimizer)
    live = list(parameters(model))
    average = [tensor.clone() for tensor in live]
    zero_grad = timed(optimizer.zero_grad, times["zero_grad"])
    forward = timed(model, times["forward"])
    compute_loss = timed(loss_of, times["loss"])
    backward = timed(Tensor.backward, times["backward"])
    step = timed(optimizer.step, times["optimizer step"])
    step_schedule = timed(schedule.step, times["schedule step"])
    blend = timed(torch._foreach_lerp_, times["average of weights"])
    clock = timed(perf_counter, times["iteration timer"])
    for inputs, targets in Batches(work, times):
        zero_grad()
        loss = compute_loss(forward(inputs), targets)
        backward(loss)
        step()
        step_schedule()
        blend(average, live, EMA_SHARE)
        clock()
    return times


def by_hookloop(work: Work) -> Times:
    """Time the parts of an update and each call of a hook."""
    times: Times = defaultdict(list)
    optimizer = work.optimizer()
    names = {"zero_grad": "zero_grad", "record": "recording the loss", "backward": "backward"}
    names["apply"] = "optimizer step"
    methods = {name: timed(getattr(Update, name), times[label]) for name, label in names.items()}
    forward = timed(forward_inputs, times["forward"])
    loss_of = timed(loss_from(nn.MSELoss()), times["loss"])
    update = type("Timed", (Update,), methods)("", forward, loss_of, [optimizer], may_skip=False)

    def wrapped(call: Call, hook: Hook, point: str) -> Call:
        return timed(call, times[f"{hook.name}, {point}"])  # type: ignore[return-value]

    trainer = Trainer(
        work.model,
        train_data=Batches(work, times),
        step=update,
        optimizer=optimizer,
        schedule=work.schedule(optimizer),
        max_epochs=1,
        device="cpu",
        default_hooks=False,
        hooks=ours.hooks_of(work),
        run_dir=work.folder / "run",
    )

    @trainer.on("before_train")
    def measure_hooks(run: Run) -> None:
        run._plan.wrap(wrapped)

    trainer.train()
    return {name: spent for name, spent in times.items() if len(spent) == ITERATIONS}


def show(title: str, times: Times, clock: float) -> None:
    """Print the parts, and the rest of the iteration."""
    begins = times.pop(ALL)
    whole = [end - begin for begin, end in pairwise(begins)]
    print(f"{title:44} median    mean")
    rest = median(whole) - clock
    for name, spent in times.items():
        # A reading of the clock is half inside the part, half outside.
        rest -= median(spent) + clock
        print(
            f"  {name:40} {(median(spent) - clock) / 1e3:8.2f} {(mean(spent) - clock) / 1e3:7.2f}"
        )
    print(f"  {'between these':40} {rest / 1e3:8.2f}")
    parts = sum(median(spent) - clock for spent in times.values())
    print(f"  {'all':40} {(parts + rest) / 1e3:8.2f}\n")


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    readings = [thread_time_ns() for _ in range(20_001)]
    clock = median(b - a for a, b in pairwise(readings))
    print(
        f"microseconds of processor time per iteration; one reading of the clock takes {clock} ns"
    )
    show("by hand", by_hand(make_work()), clock)
    show("hookloop", by_hookloop(make_work()), clock)


if __name__ == "__main__":
    main()
