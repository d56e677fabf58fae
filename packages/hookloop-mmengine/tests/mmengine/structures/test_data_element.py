"""A sample with its data and its meta information."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.structures import BaseDataElement


def make():
    return BaseDataElement(
        metainfo={"path": "a.png", "shape": [2, 3]}, score=torch.ones(2), label=np.array([1, 2])
    )


def test_data_and_meta_information_are_attributes():
    element = make()
    assert element.path == "a.png"
    assert element.score.tolist() == [1, 1]
    assert sorted(element.keys()) == ["label", "score"]
    assert sorted(element.metainfo_keys()) == ["path", "shape"]
    assert sorted(element.all_keys()) == ["label", "path", "score", "shape"]
    assert element.metainfo == {"path": "a.png", "shape": [2, 3]}
    assert "path" in element
    assert "score" in element
    assert "nothing" not in element


def test_values_come_in_the_order_of_the_keys():
    element = make()
    assert element.metainfo_values() == [element.metainfo[name] for name in element.metainfo_keys()]
    assert len(element.all_values()) == 4
    assert element.all_values()[:2] == element.metainfo_values()
    assert dict(element.items()).keys() == set(element.keys())
    assert element.values()[0] is getattr(element, element.keys()[0])


def test_a_name_is_data_or_meta_information():
    element = make()
    with pytest.raises(AttributeError, match="'path' is already used, as meta information"):
        element.path = "b.png"
    with pytest.raises(AttributeError, match="'score' is already used, as data"):
        element.set_metainfo({"score": 1})
    element.set_metainfo({"path": "c.png"})
    assert element.path == "c.png"


def test_meta_information_is_copied():
    shape = [1, 2]
    element = BaseDataElement(metainfo={"shape": shape})
    shape.append(3)
    assert element.shape == [1, 2]


def test_a_field_may_be_of_one_type_only():
    element = BaseDataElement()
    element.set_field(torch.ones(1), "score", dtype=torch.Tensor)
    with pytest.raises(AssertionError, match="should be a"):
        element.set_field([1], "score", dtype=torch.Tensor)


@pytest.mark.parametrize("name", ["_data_fields", "_metainfo_fields"])
def test_the_fields_own_names_are_private(name):
    element = make()
    with pytest.raises(AttributeError, match="private attribute"):
        setattr(element, name, set())
    with pytest.raises(AttributeError, match="private attribute"):
        delattr(element, name)


def test_fields_are_deleted_and_popped():
    element = make()
    del element.score
    assert "score" not in element
    assert element.pop("path") == "a.png"
    assert element.pop("path", None) is None
    with pytest.raises(KeyError, match="path is not contained in metainfo or data"):
        element.pop("path")
    with pytest.raises(AssertionError, match="at most one default"):
        element.pop("path", 1, 2)
    assert element.get("path", 5) == 5


def test_a_property_shows_a_private_field_under_its_name():
    class Sample(BaseDataElement):
        @property
        def boxes(self):
            return self._boxes

        @boxes.setter
        def boxes(self, value):
            self.set_field(value, "_boxes")

    sample = Sample()
    sample.set_field([1], "_boxes")
    assert sample.keys() == ["boxes"]
    assert dict(sample.items()) == {"boxes": [1]}


def test_a_clone_shares_nothing_and_a_new_one_its_values():
    element = make()
    clone, new = element.clone(), element.new()
    element.score += 1
    assert clone.score.tolist() == [1, 1]
    assert new.score is element.score
    other = element.new(metainfo={"path": "z"}, mask=1)
    assert (other.metainfo, other.keys()) == ({"path": "z"}, ["mask"])


def test_update_takes_the_fields_of_another():
    element = make()
    element.update(BaseDataElement(metainfo={"path": "b.png"}, score=0, more=1))
    assert (element.path, element.score, element.more) == ("b.png", 0, 1)


def test_conversions_reach_nested_elements_and_leave_the_rest():
    element = BaseDataElement(
        score=torch.ones(2, requires_grad=True),
        name="x",
        inner=BaseDataElement(label=np.array([1, 2]), score=torch.zeros(1, requires_grad=True)),
    )
    arrays = element.numpy()
    assert isinstance(arrays.score, np.ndarray)
    assert isinstance(arrays.inner.score, np.ndarray)
    assert arrays.name == "x"
    tensors = element.to_tensor()
    assert isinstance(tensors.inner.label, torch.Tensor)
    assert not element.detach().inner.score.requires_grad
    halves = element.to(torch.float16)
    assert halves.inner.score.dtype == halves.score.dtype == torch.float16
    assert element.cpu().score.device.type == "cpu"
    assert isinstance(element.inner.label, np.ndarray)


def test_it_becomes_nested_dicts():
    element = BaseDataElement(metainfo={"path": "a"}, inner=BaseDataElement(label=1))
    assert element.to_dict() == {"path": "a", "inner": {"label": 1}}


def test_it_shows_its_fields():
    assert repr(BaseDataElement(label=1)) == "BaseDataElement(label=1)"
