"""A training small enough to run hundreds of times, and a hook that writes down what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch.utils.data import DataLoader, TensorDataset

from hookloop.engine.hook import Hook
from hookloop.engine.points import POINTS
from hookloop.engine.run import Run
from hookloop.trainer.settings import gathered, spread
from hookloop.trainer.trainer import Trainer


def make_model(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def make_data(samples: int = 12, batch_size: int = 4, **options: object) -> DataLoader[object]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(samples, 4, generator=generator)
    targets = inputs.sum(1, keepdim=True)
    return DataLoader(TensorDataset(inputs, targets), batch_size=batch_size, **options)  # type: ignore[arg-type]


def make_trainer(**options: object) -> Trainer:
    """A trainer of three iterations per epoch, without default hooks unless they are asked for."""
    model = options.pop("model", None) or make_model()
    parts: dict[str, object] = {
        "train_data": make_data(),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.05),
        "default_hooks": False,
    }
    if "step" not in options:
        parts["loss"] = torch.nn.functional.mse_loss
    if "max_iters" not in options:
        parts["max_epochs"] = 1
    return Trainer(model, **gathered(spread(parts) | spread(options)))


def make_classes(samples: int = 12, batch_size: int = 4) -> DataLoader[object]:
    """Three classes that a small network learns quickly."""
    inputs = torch.randn(samples, 4, generator=torch.Generator().manual_seed(1))
    return DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), batch_size=batch_size)


def accuracy(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (output.argmax(1) == targets).float().mean()


def make_classifier(**options: object) -> Trainer:
    """A trainer of three iterations per epoch that validates on what it trains on."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    parts: dict[str, object] = {
        "model": model,
        "train_data": make_classes(),
        "val_data": make_classes(),
        "data": {"test": make_classes()},
        "loss": torch.nn.functional.cross_entropy,
        "metrics": {"accuracy": accuracy},
    }
    if "optimizer" not in options:
        parts["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.1)
    return make_trainer(**(spread(parts) | spread(options)))


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def assert_same_bits(one: torch.nn.Module, other: torch.nn.Module) -> None:
    theirs = other.state_dict()
    for name, value in one.state_dict().items():
        assert torch.equal(value, theirs[name]), name


class Record(Hook):
    """Writes down every point it is called at, with what ``note`` returns."""

    def __init__(self, note: Callable[[Run], object] | None = None) -> None:
        self.note = note
        self.calls: list[object] = []

    @property
    def points(self) -> list[str]:
        return [call[0] if isinstance(call, tuple) else str(call) for call in self.calls]


def _recorder(point: str) -> Callable[..., None]:
    def method(self: Record, run: Run, *args: object) -> None:
        self.calls.append(point if self.note is None else (point, self.note(run)))

    return method


for _point in POINTS:
    setattr(Record, _point.name, _recorder(_point.name))


def record(
    points: Iterable[str], note: Callable[[Run], object]
) -> tuple[Hook, list[tuple[str, object]]]:
    """A hook that notes something at a few points only."""
    calls: list[tuple[str, object]] = []

    def at(point: str) -> Callable[..., None]:
        return lambda self, run, *args: calls.append((point, note(run)))

    kind = type("Note", (Hook,), {point: at(point) for point in points})
    return kind(), calls


class Negate(Hook):
    """Replaces the batch at a point, not what is in it."""

    def __init__(self, point: str) -> None:
        setattr(self, point, self.replace)

    def replace(self, run: Run) -> None:
        run.batch = [-run.batch[0], run.batch[1]]


def negated(batches: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> list[object]:
    """The batches that `Negate` makes."""
    return [(-inputs, targets) for inputs, targets in batches]
