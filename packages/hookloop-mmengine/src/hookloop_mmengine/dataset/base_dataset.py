"""``mmengine.dataset.BaseDataset``: samples that an annotation file lists."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, ParamSpec, Self, TypeVar, cast

import numpy as np
from torch.utils.data import Dataset

from hookloop_mmengine.dataset.compose import Compose, Transform
from hookloop_mmengine.fileio import join_path, list_from_file, load
from hookloop_mmengine.utils import is_abs

__all__ = ["BaseDataset", "Compose", "force_full_init"]

P = ParamSpec("P")
R = TypeVar("R")
Info = dict[str, Any]


def force_full_init(old_func: Callable[P, R]) -> Callable[P, R]:
    """Let a method read the annotations first, if that was put off."""

    @functools.wraps(old_func)
    def complete(*args: P.args, **kwargs: P.kwargs) -> R:
        dataset = cast("Any", args[0])
        if not hasattr(dataset, "full_init"):
            raise AttributeError(f"{type(dataset)} does not have full_init method.")
        if not getattr(dataset, "_fully_initialized", False):
            dataset.full_init()
            dataset._fully_initialized = True
        return old_func(*args, **kwargs)

    return complete


class BaseDataset(Dataset[Any]):
    """The base of datasets with an annotation file; a subclass may read another format.

    Args:
        ann_file: The annotation file: a dict of ``metainfo`` and ``data_list``.
        metainfo: Meta information, which wins over that of the class and the file.
        data_root: The directory of the annotation file and of the prefixes.
        data_prefix: The directory of each kind of file in the samples.
        filter_cfg: What ``filter_data`` of a subclass uses.
        indices: The samples to keep, or how many of the first ones; a negative number for the
            last ones.
        serialize_data: Whether the samples are kept as bytes, which workers share without copies.
        pipeline: The transforms of a sample.
        test_mode: Whether a sample that the pipeline drops is an error, and not replaced.
        lazy_init: Whether the annotations are read at the first use.
        max_refetch: How many samples are tried in place of one that is dropped.
    """

    METAINFO: ClassVar[Info] = {}
    _fully_initialized = False

    def __init__(  # noqa: PLR0913, PLR0917 - MMEngine's signature
        self,
        ann_file: str | None = "",
        metainfo: Mapping[str, Any] | None = None,
        data_root: str | None = "",
        data_prefix: Mapping[str, str] | None = None,
        filter_cfg: Mapping[str, Any] | None = None,
        indices: int | Sequence[int] | None = None,
        serialize_data: bool = True,
        pipeline: Sequence[Transform | Mapping[str, object]] = (),
        test_mode: bool = False,
        lazy_init: bool = False,
        max_refetch: int = 1000,
    ) -> None:
        self.ann_file = ann_file
        self._metainfo = self._load_metainfo(copy.deepcopy(metainfo))
        self.data_root = data_root
        self.data_prefix = dict({"img_path": ""} if data_prefix is None else data_prefix)
        self.filter_cfg = copy.deepcopy(filter_cfg)
        self._indices = indices
        self.serialize_data = serialize_data
        self.test_mode = test_mode
        self.max_refetch = max_refetch
        self.data_list: list[Info] = []
        self._join_prefix()
        self.pipeline = Compose(pipeline)
        if not lazy_init:
            self.full_init()

    # --- reading the annotations; subclasses replace these

    def full_init(self) -> None:
        """Read the annotations, filter them and keep the chosen samples; once."""
        if self._fully_initialized:
            return
        self.data_list = self.load_data_list()
        self.data_list = self.filter_data()
        if self._indices is not None:
            self.data_list = _chosen(self.data_list, self._indices)
        if self.serialize_data:
            self.data_bytes, self.data_address = self._serialize_data()
        self._fully_initialized = True

    def load_data_list(self) -> list[Info]:
        """Read the annotation file and return the samples."""
        annotations = load(self.ann_file)
        if not isinstance(annotations, dict):
            raise TypeError(
                "The annotations loaded from annotation file should be a dict, but got "
                f"{type(annotations)}!"
            )
        if "data_list" not in annotations or "metainfo" not in annotations:
            raise ValueError("Annotation must have data_list and metainfo keys")
        self._metainfo = {**annotations["metainfo"], **self._metainfo}
        samples: list[Info] = []
        for raw in annotations["data_list"]:
            parsed = self.parse_data_info(raw)
            listed = parsed if isinstance(parsed, list) else [parsed]
            if not all(isinstance(sample, dict) for sample in listed):
                raise TypeError(f"data_info should be a dict or list of dict, but got {parsed!r}")
            samples.extend(listed)
        return samples

    def parse_data_info(self, raw_data_info: Info) -> Info | list[Info]:
        """Return one sample or several of an entry, with the directories before their files."""
        for key, prefix in self.data_prefix.items():
            if key not in raw_data_info:
                raise AssertionError(
                    f"raw_data_info: {raw_data_info} does not contain the prefix key {key}, "
                    "please check your data_prefix."
                )
            raw_data_info[key] = join_path(prefix, raw_data_info[key])
        return raw_data_info

    def filter_data(self) -> list[Info]:
        """Return the samples to keep; all, unless a subclass chooses."""
        return self.data_list

    def get_cat_ids(self, idx: int) -> list[int]:
        """Return the classes of a sample."""
        raise NotImplementedError(f"{type(self)} must implement `get_cat_ids` method")

    # --- samples

    @property
    def metainfo(self) -> Info:
        """A copy of the meta information."""
        return copy.deepcopy(self._metainfo)

    @force_full_init
    def __len__(self) -> int:
        return len(self.data_address) if self.serialize_data else len(self.data_list)

    def __getitem__(self, idx: int) -> Any:  # noqa: ANN401 - what the pipeline makes
        self.full_init()
        if self.test_mode:
            sample = self.prepare_data(idx)
            if sample is None:
                raise RuntimeError("Test time pipeline should not get `None` data_sample")
            return sample
        for _ in range(self.max_refetch + 1):
            sample = self.prepare_data(idx)
            if sample is not None:
                return sample
            idx = self._rand_another()
        raise RuntimeError(
            f"Cannot find valid image after {self.max_refetch}! Please check your image path and "
            "pipeline"
        )

    @force_full_init
    def get_data_info(self, idx: int) -> Info:
        """Return a copy of a sample, as it is before the pipeline."""
        index = range(len(self))[idx]
        if self.serialize_data:
            sample: Info = pickle.loads(self._bytes_of(index))
        else:
            sample = copy.deepcopy(self.data_list[index])
        sample["sample_idx"] = index
        return sample

    def prepare_data(self, idx: int) -> Any:  # noqa: ANN401 - what the pipeline makes
        """Return a sample after the pipeline, or None if that drops it."""
        return self.pipeline(self.get_data_info(idx))

    def _rand_another(self) -> int:
        return int(np.random.randint(0, len(self)))

    # --- parts

    @force_full_init
    def get_subset_(self, indices: int | Sequence[int]) -> None:
        """Keep only some samples, given as for the constructor."""
        if self.serialize_data:
            kept = [self._bytes_of(index) for index in _chosen(range(len(self)), indices)]
            self.data_bytes, self.data_address = _joined(kept)
        else:
            self.data_list = _chosen(self.data_list, indices)

    @force_full_init
    def get_subset(self, indices: int | Sequence[int]) -> Self:
        """Return a copy with some of the samples."""
        other = self._copy_without_annotation()
        if self.serialize_data:
            other.data_bytes, other.data_address = self.data_bytes, self.data_address
        else:
            other.data_list = copy.deepcopy(self.data_list)
        other.get_subset_(indices)
        return other

    def _copy_without_annotation(self, memo: dict[int, Any] | None = None) -> Self:
        other = type(self).__new__(type(self))
        memo = {} if memo is None else memo
        memo[id(self)] = other
        left_out = ("data_list", "data_address", "data_bytes")
        for name, value in vars(self).items():
            if name not in left_out:
                vars(other)[name] = copy.deepcopy(value, memo)
        other.data_list = []
        return other

    def _serialize_data(self) -> tuple[Any, Any]:
        samples = [np.frombuffer(pickle.dumps(one, 4), np.uint8) for one in self.data_list]
        self.data_list.clear()
        return _joined(samples)

    def _bytes_of(self, index: int) -> Any:  # noqa: ANN401 - a part of the array of bytes
        begin = self.data_address[index - 1] if index else 0
        return self.data_bytes[begin : self.data_address[index]]

    # --- arguments

    @classmethod
    def _load_metainfo(cls, metainfo: Mapping[str, Any] | None = None) -> Info:
        # Not `isinstance(..., Mapping)`: a Config only behaves like one.
        if metainfo is not None and not hasattr(metainfo, "items"):
            raise TypeError(f"metainfo should be a Mapping or Config, but got {type(metainfo)}")
        found = copy.deepcopy(cls.METAINFO)
        for name, value in metainfo.items() if metainfo is not None else ():
            found[name] = value
            if isinstance(value, str):
                try:  # A text may be the name of a file with the values.
                    found[name] = list_from_file(value)
                except (TypeError, FileNotFoundError):
                    continue
        return found

    def _join_prefix(self) -> None:
        if self.ann_file and not is_abs(self.ann_file) and self.data_root:
            self.ann_file = join_path(self.data_root, self.ann_file)
        for key, prefix in self.data_prefix.items():
            if not isinstance(prefix, str):
                raise TypeError(f"prefix should be a string, but got {type(prefix)}")
            if not is_abs(prefix) and self.data_root:
                self.data_prefix[key] = join_path(self.data_root, prefix)


T = TypeVar("T")


def _chosen(samples: Sequence[T], indices: int | Sequence[int]) -> list[T]:
    if isinstance(indices, int):
        return list(samples[:indices] if indices >= 0 else samples[indices:])
    if not isinstance(indices, Sequence):
        raise TypeError(f"indices should be a int or sequence of int, but got {type(indices)}")
    return [samples[index] for index in indices]


def _joined(samples: Sequence[Any]) -> tuple[Any, Any]:
    """Return one array of bytes, and where each sample ends in it."""
    ends = np.array(list(itertools.accumulate(len(one) for one in samples)), np.int64)
    return np.concatenate(samples) if samples else np.array([], np.uint8), ends
