"""``vissl.utils.activation_statistics``: mean and spread of what layers compute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, nn

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle


class ActivationStatistics(NamedTuple):
    """What was seen of one layer in one iteration.

    Attributes:
        name: The layer.
        iteration: The iteration.
        module_type: The class of the layer, with its module.
        mean: The mean of its outputs.
        spread: The largest distance from the mean.
    """

    name: str
    iteration: int
    module_type: str
    mean: float
    spread: float


class ActivationStatisticsObserver(ABC):
    """Gets the statistics as they are computed."""

    @abstractmethod
    def consume(self, stat: ActivationStatistics) -> None:
        """Take the statistics of one layer."""


class ActivationStatisticsAccumulator(ActivationStatisticsObserver):
    """Keeps all statistics in ``stats``."""

    def __init__(self) -> None:
        self.stats: list[ActivationStatistics] = []

    def consume(self, stat: ActivationStatistics) -> None:
        self.stats.append(stat)


class ActivationStatisticsMonitor:
    """Watch the outputs of a model's layers while it trains.

    Args:
        observer: Gets the statistics.
        log_frequency: Iterations between two looks.
        ignored_modules: Classes of layers that are not watched, with their modules.
        sample_feature_map: Whether to look only at the middle of a feature map.
    """

    def __init__(
        self,
        observer: ActivationStatisticsObserver,
        log_frequency: int,
        ignored_modules: set[str] | None = None,
        sample_feature_map: bool = False,
    ) -> None:
        self.observer = observer
        self.log_frequency = log_frequency
        ignored = {"torch.nn.modules.activation.ReLU"}
        self.ignored_modules = ignored if ignored_modules is None else ignored_modules
        self.sample_feature_map = sample_feature_map
        self.iteration = -1
        self._handles: list[RemovableHandle] = []

    def set_iteration(self, iteration: int) -> None:
        """Say which iteration comes next."""
        self.iteration = iteration

    def monitor(self, model: nn.Module) -> None:
        """Begin to watch the layers of a model: the modules without children."""
        for name, module in model.named_modules():
            is_layer = not any(True for _ in module.children())
            if is_layer and _type_of(module) not in self.ignored_modules:
                self._handles.append(module.register_forward_hook(self._watch(name)))

    def stop(self) -> None:
        """Stop watching."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.iteration = -1

    def _watch(self, name: str) -> Any:  # noqa: ANN401 - a forward hook
        def look(module: nn.Module, inputs: object, outputs: object) -> None:
            if not module.training or self.iteration % self.log_frequency:
                return
            seen = [self._middle(tensor.detach()) for tensor in _tensors(outputs)]
            if seen:
                means = [float(values.mean()) for values in seen]
                spreads = [float((values - values.mean()).abs().max()) for values in seen]
                mean = sum(means) / len(means)
                stat = (name, self.iteration, _type_of(module), mean, max(spreads))
                self.observer.consume(ActivationStatistics(*stat))

        return look

    def _middle(self, values: Tensor) -> Tensor:
        if values.ndim != 4 or not self.sample_feature_map:
            return values
        return values[:, :, values.shape[2] // 2, values.shape[3] // 2]


def _type_of(module: nn.Module) -> str:
    return f"{type(module).__module__}.{type(module).__name__}"


def _tensors(outputs: object) -> Iterator[Tensor]:
    if isinstance(outputs, Tensor):
        yield outputs
    elif isinstance(outputs, list | tuple):
        for part in outputs:
            yield from _tensors(part)
