"""A user's project with types everywhere, which `mypy --strict` and pyright accept as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from hookloop import (
    Every,
    Hook,
    Interrupted,
    Outcome,
    Point,
    Pretrained,
    Run,
    Schedule,
    Trainer,
    limit,
)
from hookloop.hooks import (
    AccumulateVariables,
    ActOnPlateau,
    AugmentAtTest,
    AverageWeights,
    ExportModel,
    SaveCheckpoint,
    StopOnPlateau,
    VisualizePredictions,
    WriteTo,
)
from hookloop.writers.base import Writer
from hookloop.writers.records import Record, Scalars

Batch = tuple[Tensor, Tensor]


def make_data(count: int) -> DataLoader[Batch]:
    inputs = torch.randn(count, 4)
    return DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8)  # type: ignore[arg-type,return-value,unused-ignore]


def accuracy(output: Tensor, targets: Tensor) -> Tensor:
    return (output.argmax(1) == targets).float().mean()


def step(run: Run, batch: tuple[Tensor, Tensor]) -> Tensor:
    inputs, targets = batch
    return nn.functional.cross_entropy(run.model(inputs), targets)


def part_step(run: Run, batch: tuple[Tensor, Tensor]) -> Tensor:
    inputs, targets = batch
    output: Tensor = run.model.get_submodule("critic")(run.model.get_submodule("generator")(inputs))
    return nn.functional.cross_entropy(output, targets)


def step_of_mappings(run: Run, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    output: Tensor = run.model(batch["inputs"])
    return {"loss": nn.functional.mse_loss(output, batch["targets"]), "output": output}


class Confidence(AccumulateVariables):
    writes = ("*/confidence",)

    def __init__(self) -> None:
        super().__init__(["output"], streams=["val"])

    def summarize(self, run: Run, stream: str, values: Mapping[str, list[Tensor]]) -> None:
        scores = torch.cat(values["output"]).softmax(1)
        run.metrics.put(f"{stream}/confidence", scores.max(1).values.mean())


class HalveRate(ActOnPlateau):
    def act(self, run: Run) -> None:
        for group in run.optimizer.param_groups:
            group["lr"] /= 2


class Look(Hook):
    reads = ("val/clean/accuracy",)
    priority = "LOW"
    every = "1 epoch"

    def __init__(self, folder: Path = Path()) -> None:
        self.folder = folder
        self.seen = 0

    def before_forward(self, run: Run) -> None:
        inputs, targets = run.batch
        run.batch = (inputs * 2, targets)

    def after_forward(self, run: Run) -> None:
        if run.phase == "train" and run.output.shape[0] == 8:
            self.seen += len(run.output)

    def after_loss(self, run: Run) -> None:
        assert run.loss is not None
        self.folder / f"{run.loss.item():.3f}"

    @limit("10 iters")
    def after_train_iter(self, run: Run) -> None:
        run.metrics.put("seen", self.seen)

    def after_val_epoch(self, run: Run, metrics: Mapping[str, float]) -> None:
        if metrics["clean/accuracy"] > 0.99:
            run.stop("good enough")

    def state_dict(self) -> dict[str, object]:
        return {"seen": self.seen}


class Shout(Writer):
    def write(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record, Scalars):
                print(record.values)


def main() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = make_data(64)
    trainer = Trainer(
        model,
        train_data=data,
        val_data={"clean": data, "small": make_data(8)},
        data={"test": [(torch.ones(2, 4), torch.zeros(2, dtype=torch.long))]},
        loss=lambda output, targets: nn.functional.cross_entropy(output, targets),
        optimizer=optimizer,
        schedule=Schedule(torch.optim.lr_scheduler.StepLR(optimizer, 5), every="1 epoch"),
        metrics={
            "accuracy": accuracy,
            "top": lambda output, targets: (output.argmax(1) == targets).float().mean(),
        },
        max_epochs=2,
        val_every=Every.parse("1 epoch"),
        setup={"points": [Point("after_sample", args=("text",))]},
        hooks=[
            Look(),
            Confidence(),
            AverageWeights(),
            StopOnPlateau("val/clean/loss"),
            HalveRate("val/clean/loss"),
            AugmentAtTest([lambda inputs: inputs + 0.1]),
            ExportModel(inputs=lambda run: torch.ones(1, 4)),
            VisualizePredictions(),
            WriteTo(Shout()),
        ],
        default_hooks={"checkpoint": SaveCheckpoint(every="1 epoch"), "console": None},
    )

    @trainer.on("after_train_iter", every=50)
    def show(run: Run) -> None:
        print(run.progress.iter, run.loss)

    try:
        outcome: Outcome = trainer.train()
    except Interrupted as interrupted:
        outcome = interrupted.outcome
    print(outcome.status, outcome.metrics["val/clean/accuracy"], trainer.test()["accuracy"])
    if Path("model.pth").exists():
        Pretrained("model.pth", partial=True).load_into(model)


def own_loop() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(
        model,
        train_data=make_data(64),
        optimizer=optimizer,
        max_iters=3,
        hooks={"averaged": AverageWeights(), "none": None},
    )
    with trainer.loop() as batches:
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()  # type: ignore[no-untyped-call,unused-ignore]
            optimizer.step()
            trainer.record(loss, accuracy=accuracy(model(x), y))


def several(generator: nn.Module, critic: nn.Module) -> Trainer:
    both = nn.ModuleDict({"generator": generator, "critic": critic})
    return Trainer(
        both,
        train_data=make_data(8),
        step={"generator": part_step, "critic": part_step},
        optimizer={
            "generator": torch.optim.Adam(generator.parameters()),
            "critic": torch.optim.Adam(critic.parameters()),
        },
        max_iters=2,
    )


def mappings(model: nn.Module) -> Trainer:
    data = [{"inputs": torch.ones(2, 4), "targets": torch.ones(2, 2)}]
    optimizer = torch.optim.Adam(model.parameters())
    return Trainer(model, train_data=data, step=step_of_mappings, optimizer=optimizer, max_iters=1)


if __name__ == "__main__":
    main()
    own_loop()
