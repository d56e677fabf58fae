"""``mmengine.dataset``: chains of transforms, and datasets made of other datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from torch.utils.data import ConcatDataset as TorchConcat
from torch.utils.data import Dataset

Transform = Callable[[object], object]


class Compose:
    """A chain of transforms; the first one that returns None drops the sample.

    Args:
        transforms: Functions, or dicts that describe them.
    """

    def __init__(self, transforms: Sequence[Transform | Mapping[str, object]] | None) -> None:
        from hookloop.dialects.mmengine.registry import TRANSFORMS

        self.transforms: list[Transform] = []
        for entry in transforms or ():
            transform = TRANSFORMS.build(entry) if isinstance(entry, Mapping) else entry
            if not callable(transform):
                raise TypeError(f"transform should be a callable object, but got {transform!r}")
            self.transforms.append(transform)

    def __call__(self, data: object) -> object:
        for transform in self.transforms:
            data = transform(data)
            # Detection pipelines drop samples without a valid box this way.
            if data is None:
                return None
        return data


class ConcatDataset(TorchConcat[object]):
    """Several datasets, one after the other.

    Args:
        datasets: Datasets, or dicts that describe them.
    """

    def __init__(
        self, datasets: Sequence[Dataset[object] | Mapping[str, object]], **_: object
    ) -> None:
        super().__init__([_build(dataset) for dataset in datasets])

    @property
    def metainfo(self) -> object:
        """The meta information of the first dataset."""
        return getattr(self.datasets[0], "metainfo", {})


class RepeatDataset(Dataset[object]):
    """A dataset that repeats another one.

    Args:
        dataset: A dataset, or a dict that describes it.
        times: How often it is repeated.
        lazy_init: Accepted for its name; the dataset is always ready.
    """

    def __init__(
        self, dataset: Dataset[object] | Mapping[str, object], times: int, lazy_init: bool = False
    ) -> None:
        self.dataset = _build(dataset)
        self.times = times

    def __getitem__(self, index: int) -> object:
        return self.dataset[index % self._length]

    def __len__(self) -> int:
        return self.times * self._length

    @property
    def metainfo(self) -> object:
        """The meta information of the dataset."""
        return getattr(self.dataset, "metainfo", {})

    @property
    def _length(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]


def _build(dataset: Dataset[object] | Mapping[str, object]) -> Dataset[object]:
    from hookloop.dialects.mmengine.registry import DATASETS

    return cast(
        "Dataset[object]", DATASETS.build(dataset) if isinstance(dataset, Mapping) else dataset
    )
