"""PyTorch-Ignite on the common work: an `Engine` around a custom step, its cheapest form."""

from __future__ import annotations

import json

from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver, EMAHandler, Timer
from torch import Tensor, nn

from bench.tiny import EMA_SHARE, LOG_EVERY, Work


def train(work: Work) -> None:
    """Train as the case says."""
    case, model, optimizer = work.case, work.model, work.optimizer()
    loss_of = nn.MSELoss()
    model.train()

    def step(engine: Engine, batch: list[Tensor]) -> Tensor:
        inputs, targets = batch
        optimizer.zero_grad()
        loss: Tensor = loss_of(model(inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss

    trainer = Engine(step)
    if case.everyday:
        _watch(work, trainer, optimizer)
    if case.ema:
        EMAHandler(model, momentum=EMA_SHARE).attach(trainer)
    for _ in range(case.idle):
        trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: None)
    for _ in range(case.empty):
        trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: None)
    trainer.run(work.loader(), max_epochs=1)


def _watch(work: Work, trainer: Engine, optimizer: object) -> None:
    schedule = work.schedule(optimizer)  # type: ignore[arg-type]
    timer = Timer(average=True)
    timer.attach(
        trainer,
        start=Events.EPOCH_STARTED,
        resume=Events.ITERATION_STARTED,
        pause=Events.ITERATION_COMPLETED,
        step=Events.ITERATION_COMPLETED,
    )
    log = (work.folder / "log.jsonl").open("w")

    @trainer.on(Events.ITERATION_COMPLETED)
    def step(engine: Engine) -> None:
        schedule.step()

    @trainer.on(Events.ITERATION_COMPLETED(every=LOG_EVERY))
    def write(engine: Engine) -> None:
        line = {
            "iter": engine.state.iteration,
            "loss": engine.state.output.item(),
            "lr": schedule.get_last_lr()[0],
            "iter_time": timer.value(),
        }
        log.write(json.dumps(line) + "\n")
        log.flush()

    saved = {"model": work.model, "optimizer": optimizer, "schedule": schedule, "trainer": trainer}
    checkpoint = Checkpoint(saved, DiskSaver(str(work.folder), require_empty=False), n_saved=1)
    trainer.add_event_handler(Events.COMPLETED, checkpoint)
    trainer.add_event_handler(Events.COMPLETED, log.close)
