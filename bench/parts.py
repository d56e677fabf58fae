"""Where the time of an iteration goes: ``python -m bench.parts``.

First the statements of the hand-written loop, then the hooks of the everyday set and the average of
weights, each timed on its own inside a training. Reading the clock takes half a microsecond, which
is taken off.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean, median
from time import thread_time_ns

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import nn

from bench import ours
from bench.tiny import Case, Perceptron, Work, make_data
from hookloop import Hook, Run, Trainer
from hookloop.core.acting import Call

ITERATIONS = 6400

Times = dict[str, list[int]]


def make_work() -> Work:
    """Return the everyday set with the average of weights."""
    case = Case("parts", everyday=True, ema=True)
    model, data = Perceptron(lambda: None), make_data(ITERATIONS)
    return Work(case, model, ITERATIONS, data, Path(tempfile.mkdtemp()))


def by_hand(work: Work) -> Times:
    """Time each statement."""
    times: Times = defaultdict(list)
    marks: list[int] = []
    names = ("data", "zero_grad", "forward", "loss", "backward", "optimizer step", "schedule step")
    model, optimizer, loss_of = work.model, work.optimizer(), nn.MSELoss()
    schedule = work.schedule(optimizer)
    batches = iter(work.loader())
    for _ in range(ITERATIONS):
        marks = [thread_time_ns()]
        inputs, targets = next(batches)
        marks.append(thread_time_ns())
        optimizer.zero_grad()
        marks.append(thread_time_ns())
        output = model(inputs)
        marks.append(thread_time_ns())
        loss = loss_of(output, targets)
        marks.append(thread_time_ns())
        loss.backward()
        marks.append(thread_time_ns())
        optimizer.step()
        marks.append(thread_time_ns())
        schedule.step()
        marks.append(thread_time_ns())
        for name, begin, end in zip(names, marks, marks[1:], strict=False):
            times[name].append(end - begin)
    return times


def by_hooks(work: Work) -> Times:
    """Time each call of a hook."""
    times: Times = defaultdict(list)

    def timed(call: Call, hook: Hook, point: str) -> Call:
        kept = times[f"{hook.name}.{point}"]

        def measure(run: Run, *args: object) -> None:
            begin = thread_time_ns()
            call(run, *args)
            kept.append(thread_time_ns() - begin)

        return measure

    optimizer = work.optimizer()
    trainer = Trainer(
        work.model,
        train_data=work.loader(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        schedule=work.schedule(optimizer),
        max_epochs=1,
        device="cpu",
        default_hooks=False,
        hooks=ours.hooks_of(work),
        run_dir=work.folder / "run",
    )
    trainer.on("before_train")(lambda run: run.plan.wrap(timed))
    trainer.train()
    return {name: spent for name, spent in times.items() if len(spent) == ITERATIONS}


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    clock = [-(thread_time_ns() - thread_time_ns()) for _ in range(10_000)]
    off = median(clock)
    print("microseconds per iteration        median    mean")
    for times in (by_hand(make_work()), by_hooks(make_work())):
        for name, spent in times.items():
            print(f"{name:32} {(median(spent) - off) / 1e3:7.2f} {(mean(spent) - off) / 1e3:7.2f}")


if __name__ == "__main__":
    main()
