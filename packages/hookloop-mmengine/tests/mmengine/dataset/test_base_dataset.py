"""Samples that an annotation file lists."""

import copy
import json
import pickle

import numpy as np
import pytest
import torch

from hookloop_mmengine.config import Config
from hookloop_mmengine.dataset import BaseDataset, force_full_init


@pytest.fixture
def root(tmp_path):
    content = {
        "metainfo": {"classes": ["cat", "dog"], "task": "file"},
        "data_list": [{"img_path": f"{n}.jpg", "label": n} for n in range(5)],
    }
    (tmp_path / "ann.json").write_text(json.dumps(content))
    return str(tmp_path)


def labels(dataset):
    return [dataset.get_data_info(index)["label"] for index in range(len(dataset))]


@pytest.mark.parametrize("serialize", [True, False])
def test_samples_of_a_file(root, serialize):
    dataset = BaseDataset(
        "ann.json", data_root=root, data_prefix={"img_path": "imgs"}, serialize_data=serialize
    )
    assert len(dataset) == 5
    wanted = {"img_path": f"{root}/imgs/1.jpg", "label": 1, "sample_idx": 1}
    assert dataset.get_data_info(1) == dataset[1] == dataset[-4] == wanted
    # A copy: a transform may change its sample.
    dataset[1]["label"] = 9
    assert dataset[1]["label"] == 1
    assert bool(dataset.data_list) is not serialize
    with pytest.raises(IndexError):
        dataset.get_data_info(5)


@pytest.mark.parametrize("serialize", [True, False])
@pytest.mark.parametrize(
    ("indices", "wanted"), [(2, [0, 1]), (-2, [3, 4]), ([4, 0, -2], [4, 0, 3]), ([], [])]
)
def test_some_of_the_samples(root, indices, wanted, serialize):
    options = {"data_root": root, "serialize_data": serialize}
    assert labels(BaseDataset("ann.json", indices=indices, **options)) == wanted
    whole = BaseDataset("ann.json", **options)
    part = whole.get_subset(indices)
    assert labels(part) == wanted
    assert part.metainfo == whole.metainfo
    assert len(whole) == 5
    whole.get_subset_(indices)
    assert labels(whole) == wanted
    with pytest.raises(TypeError, match="indices should be a int or sequence of int"):
        whole.get_subset(1.5)


def test_meta_information_of_class_file_and_arguments(root, tmp_path):
    class Own(BaseDataset):
        METAINFO = {"task": "class", "size": 3}  # noqa: RUF012

    (tmp_path / "names.txt").write_text("a\nb\n")
    given = Config({"names": str(tmp_path / "names.txt"), "author": "nobody", "size": 4})
    dataset = Own("ann.json", data_root=root, metainfo=given)
    assert dataset.metainfo == {
        "task": "class",
        "classes": ["cat", "dog"],
        "names": ["a", "b"],
        "author": "nobody",
        "size": 4,
    }
    dataset.metainfo["size"] = 5
    assert dataset.metainfo["size"] == 4
    assert Own.METAINFO["size"] == 3
    with pytest.raises(TypeError, match="metainfo should be a Mapping or Config"):
        BaseDataset(metainfo=3, lazy_init=True)


def test_a_dropped_sample_is_replaced(root):
    def odd(sample):
        return sample if sample["label"] % 2 else None

    np.random.seed(0)
    dataset = BaseDataset("ann.json", data_root=root, pipeline=[odd])
    assert dataset[0]["label"] in (1, 3)
    with pytest.raises(RuntimeError, match="pipeline should not get `None`"):
        _ = BaseDataset("ann.json", data_root=root, pipeline=[odd], test_mode=True)[0]
    never = BaseDataset("ann.json", data_root=root, pipeline=[lambda _: None], max_refetch=3)
    with pytest.raises(RuntimeError, match="Cannot find valid image after 3"):
        _ = never[0]


def test_annotations_are_read_at_the_first_use(root):
    for use in (len, lambda dataset: dataset[0], lambda dataset: dataset.get_subset(1)):
        dataset = BaseDataset("ann.json", data_root=root, lazy_init=True)
        assert not dataset._fully_initialized
        use(dataset)
        assert dataset._fully_initialized
        dataset.full_init()
        assert len(dataset) == 5

    class Bare:
        @force_full_init
        def use(self): ...

    with pytest.raises(AttributeError, match="does not have full_init"):
        Bare().use()


def test_a_subclass_parses_and_filters(root):
    class Own(BaseDataset):
        def parse_data_info(self, raw):
            return [raw, dict(raw, label=-raw["label"])]

        def filter_data(self):
            return [one for one in self.data_list if one["label"] < self.filter_cfg["below"]]

    dataset = Own("ann.json", data_root=root, filter_cfg={"below": 0})
    assert labels(dataset) == [-1, -2, -3, -4]
    with pytest.raises(NotImplementedError, match="must implement `get_cat_ids`"):
        dataset.get_cat_ids(0)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ([], TypeError),
        ({"data_list": []}, ValueError),
        ({"data_list": [3], "metainfo": {}}, Exception),
    ],
)
def test_a_wrong_file_is_rejected(tmp_path, content, error):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(error):
        BaseDataset(str(tmp_path / "a.json"))


def test_wrong_prefixes_are_rejected(root):
    with pytest.raises(AssertionError, match="does not contain the prefix key mask"):
        BaseDataset("ann.json", data_root=root, data_prefix={"mask": ""})
    with pytest.raises(TypeError, match="prefix should be a string"):
        BaseDataset(data_prefix={"img_path": 3}, lazy_init=True)
    remote = BaseDataset(
        "http://x/ann.json", data_root=root, data_prefix={"a": "s3://b"}, lazy_init=True
    )
    assert (remote.ann_file, remote.data_prefix) == ("http://x/ann.json", {"a": "s3://b"})


def test_workers_get_a_copy_that_works(root):
    dataset = BaseDataset("ann.json", data_root=root)
    for other in (copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))):
        assert labels(other) == [0, 1, 2, 3, 4]
    loader = torch.utils.data.DataLoader(dataset, batch_size=2, collate_fn=list)
    assert [one["label"] for batch in loader for one in batch] == [0, 1, 2, 3, 4]
