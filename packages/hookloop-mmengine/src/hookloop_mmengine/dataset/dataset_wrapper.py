"""``mmengine.dataset``: datasets made of other datasets."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np
from torch.utils.data import ConcatDataset as TorchConcat
from torch.utils.data import Dataset

from hookloop_mmengine.dataset.base_dataset import force_full_init

Described = Dataset[Any] | Mapping[str, object]


class _Wrapper(Dataset[Any]):
    """The base of datasets with the samples of another one.

    Args:
        dataset: A dataset, or a dict that describes it.
        lazy_init: Whether the annotations are read at the first use.
    """

    _fully_initialized = False

    def __init__(self, dataset: Described, lazy_init: bool = False) -> None:
        self.dataset = cast("Any", _build(dataset))
        self._metainfo = _metainfo_of(self.dataset)
        if not lazy_init:
            self.full_init()

    @property
    def metainfo(self) -> dict[str, Any]:
        """A copy of the meta information of the dataset."""
        return copy.deepcopy(self._metainfo)

    def full_init(self) -> None:
        """Read the annotations of the dataset; once."""
        if not self._fully_initialized:
            _complete(self.dataset)
            self._prepare()
            self._fully_initialized = True

    def _prepare(self) -> None:
        raise NotImplementedError

    def _get_ori_dataset_idx(self, idx: int) -> int:
        raise NotImplementedError

    @force_full_init
    def get_data_info(self, idx: int) -> dict[str, Any]:
        """Return a sample as it is before the pipeline."""
        found: dict[str, Any] = self.dataset.get_data_info(self._get_ori_dataset_idx(idx))
        return found

    @force_full_init
    def __getitem__(self, idx: int) -> Any:  # noqa: ANN401 - what the dataset has
        return self.dataset[self._get_ori_dataset_idx(idx)]

    def get_subset_(self, indices: object) -> NoReturn:
        """Reject this: the part has to be taken of the dataset inside."""
        _reject_subset(self)

    def get_subset(self, indices: object) -> NoReturn:
        """Reject this: the part has to be taken of the dataset inside."""
        _reject_subset(self)


class RepeatDataset(_Wrapper):
    """A dataset that repeats another one.

    Args:
        dataset: A dataset, or a dict that describes it.
        times: How often it is repeated.
        lazy_init: Whether the annotations are read at the first use.
    """

    def __init__(self, dataset: Described, times: int, lazy_init: bool = False) -> None:
        self.times = times
        super().__init__(dataset, lazy_init)

    def _prepare(self) -> None:
        self._ori_len = len(self.dataset)

    def _get_ori_dataset_idx(self, idx: int) -> int:
        return idx % self._ori_len

    @force_full_init
    def __len__(self) -> int:
        return self.times * self._ori_len


class ClassBalancedDataset(_Wrapper):
    """A dataset that repeats the samples of rare classes.

    A sample is repeated as often as its rarest class asks for: the root of the threshold divided by
    the share of the samples that have the class.

    Args:
        dataset: A dataset with ``get_cat_ids``, or a dict that describes it.
        oversample_thr: The share below which a class is rare.
        lazy_init: Whether the annotations are read at the first use.
    """

    def __init__(self, dataset: Described, oversample_thr: float, lazy_init: bool = False) -> None:
        self.oversample_thr = oversample_thr
        super().__init__(dataset, lazy_init)

    def _prepare(self) -> None:
        factors = self._get_repeat_factors(self.dataset, self.oversample_thr)
        self.repeat_indices = [
            index for index, factor in enumerate(factors) for _ in range(math.ceil(factor))
        ]

    def _get_repeat_factors(self, dataset: Any, repeat_thr: float) -> list[float]:  # noqa: ANN401
        classes = [set(dataset.get_cat_ids(index)) for index in range(len(dataset))]
        counts = Counter(one for listed in classes for one in listed)
        factors = {
            one: max(1.0, math.sqrt(repeat_thr / (count / len(classes))))
            for one, count in counts.items()
        }
        return [max((factors[one] for one in listed), default=1.0) for listed in classes]

    def _get_ori_dataset_idx(self, idx: int) -> int:
        return self.repeat_indices[idx]

    @force_full_init
    def get_cat_ids(self, idx: int) -> list[int]:
        """Return the classes of a sample."""
        found: list[int] = self.dataset.get_cat_ids(self._get_ori_dataset_idx(idx))
        return found

    @force_full_init
    def __len__(self) -> int:
        return len(self.repeat_indices)


class ConcatDataset(TorchConcat[Any]):
    """Several datasets, one after the other.

    Args:
        datasets: Datasets, or dicts that describe them.
        lazy_init: Whether the annotations are read at the first use.
        ignore_keys: Meta information that may differ; the rest is the same in all of them.
    """

    _fully_initialized = False

    def __init__(
        self,
        datasets: Sequence[Described],
        lazy_init: bool = False,
        ignore_keys: str | list[str] | None = None,
    ) -> None:
        if ignore_keys is not None and not isinstance(ignore_keys, str | list):
            raise TypeError(f"ignore_keys should be a list or str, but got {type(ignore_keys)}")
        ignored = [ignore_keys] if isinstance(ignore_keys, str) else ignore_keys
        self.ignore_keys: list[str] = ignored or []
        self.datasets = [_build(dataset) for dataset in datasets]
        self._metainfo = _metainfo_of(self.datasets[0])
        self._check_metainfo()
        if not lazy_init:
            self.full_init()

    @property
    def metainfo(self) -> dict[str, Any]:
        """A copy of the meta information of the first dataset."""
        return copy.deepcopy(self._metainfo)

    def _check_metainfo(self) -> None:
        found = [_metainfo_of(dataset) for dataset in self.datasets]
        for key in sorted({key for one in found for key in one} - set(self.ignore_keys)):
            for number, one in enumerate(found, 1):
                if key not in one:
                    raise ValueError(
                        f"{key} is not in the meta information of the {number}-th dataset"
                    )
                if type(one[key]) is not type(found[0].get(key)):
                    raise TypeError(
                        f"The type {type(one[key])} of {key} in the {number}-th dataset should be "
                        "the same with the first dataset"
                    )
                if not np.array_equal(one[key], found[0][key]):
                    raise ValueError(
                        f"The meta information of the {number}-th dataset does not match meta "
                        f"information of the first dataset: {key}"
                    )

    def full_init(self) -> None:
        """Read the annotations of all datasets; once."""
        if self._fully_initialized:
            return
        for dataset in self.datasets:
            _complete(dataset)
        super().__init__(self.datasets)
        self._fully_initialized = True

    def _get_ori_dataset_idx(self, idx: int) -> tuple[int, int]:
        if not -len(self) <= idx < len(self):
            raise ValueError(
                f"absolute value of index({idx}) should not exceed dataset length({len(self)})."
            )
        index = idx % len(self)
        number = int(np.searchsorted(self.cumulative_sizes, index, side="right"))
        return number, index - (self.cumulative_sizes[number - 1] if number else 0)

    @force_full_init
    def get_data_info(self, idx: int) -> dict[str, Any]:
        """Return a sample as it is before the pipeline."""
        number, index = self._get_ori_dataset_idx(idx)
        found: dict[str, Any] = cast("Any", self.datasets[number]).get_data_info(index)
        return found

    @force_full_init
    def __len__(self) -> int:
        return super().__len__()

    @force_full_init
    def __getitem__(self, idx: int) -> Any:  # noqa: ANN401 - what the dataset has
        number, index = self._get_ori_dataset_idx(idx)
        return self.datasets[number][index]

    def get_subset_(self, indices: object) -> NoReturn:
        """Reject this: the part has to be taken of the datasets inside."""
        _reject_subset(self)

    def get_subset(self, indices: object) -> NoReturn:
        """Reject this: the part has to be taken of the datasets inside."""
        _reject_subset(self)


def _build(dataset: Described) -> Dataset[Any]:
    from hookloop_mmengine.registry import DATASETS

    return cast(
        "Dataset[Any]", DATASETS.build(dataset) if isinstance(dataset, Mapping) else dataset
    )


def _metainfo_of(dataset: object) -> dict[str, Any]:
    return dict(getattr(dataset, "metainfo", None) or {})


def _complete(dataset: object) -> None:
    # A dataset of torch is always ready.
    full_init = getattr(dataset, "full_init", None)
    if callable(full_init):
        full_init()


def _reject_subset(dataset: object) -> NoReturn:
    name = type(dataset).__name__
    raise NotImplementedError(
        f"`{name}` does not support `get_subset` and `get_subset_`, because it would not be clear "
        f"what they mean. Call them of the dataset inside, and then use `{name}`."
    )
