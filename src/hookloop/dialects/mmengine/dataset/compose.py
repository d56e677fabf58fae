"""``mmengine.dataset``: transforms one after another, and data sets made of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from torch.utils.data import ConcatDataset as TorchConcat
from torch.utils.data import Dataset

Transform = Callable[[object], object]


class Compose:
    """Transforms, one after another; one that returns None drops the sample.

    Args:
        transforms: Functions, or how to build them.
    """

    def __init__(self, transforms: Sequence[Transform | Mapping[str, object]] | None) -> None:
        from hookloop.dialects.mmengine.registry import TRANSFORMS

        self.transforms: list[Transform] = [
            cast("Transform", TRANSFORMS.build(one) if isinstance(one, Mapping) else one)
            for one in transforms or ()
        ]

    def __call__(self, data: object) -> object:
        for transform in self.transforms:
            data = transform(data)
            if data is None:
                return None
        return data


class ConcatDataset(TorchConcat[object]):
    """Several data sets as one.

    Args:
        datasets: Objects, or how to build them.
    """

    def __init__(
        self, datasets: Sequence[Dataset[object] | Mapping[str, object]], **_: object
    ) -> None:
        super().__init__([_built(one) for one in datasets])

    @property
    def metainfo(self) -> object:
        """That of the first."""
        return getattr(self.datasets[0], "metainfo", {})


class RepeatDataset(Dataset[object]):
    """A data set several times over.

    Args:
        dataset: An object, or how to build it.
        times: How often.
    """

    def __init__(
        self, dataset: Dataset[object] | Mapping[str, object], times: int, lazy_init: bool = False
    ) -> None:
        self.dataset = _built(dataset)
        self.times = times

    def __getitem__(self, index: int) -> object:
        return self.dataset[index % self._once]

    def __len__(self) -> int:
        return self.times * self._once

    @property
    def metainfo(self) -> object:
        """That of the data set."""
        return getattr(self.dataset, "metainfo", {})

    @property
    def _once(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]


def _built(dataset: Dataset[object] | Mapping[str, object]) -> Dataset[object]:
    from hookloop.dialects.mmengine.registry import DATASETS

    return cast(
        "Dataset[object]", DATASETS.build(dataset) if isinstance(dataset, Mapping) else dataset
    )
