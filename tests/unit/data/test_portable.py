from dataclasses import dataclass

import torch

from hookloop.data.portable import named_tensors, to_portable, write_portable


@dataclass
class Pair:
    left: object
    right: object


def test_a_file_holds_tensors_in_plain_containers(tmp_path):
    parameter = torch.nn.Parameter(torch.ones(2))
    write_portable(tmp_path / "a.pt", {"pair": Pair(parameter, [1, "x"]), 3: object})
    loaded = torch.load(tmp_path / "a.pt", weights_only=True)
    assert torch.equal(loaded["pair"]["left"], torch.ones(2))
    assert not loaded["pair"]["left"].requires_grad
    assert loaded["pair"]["right"] == [1, "x"]
    assert loaded["3"] == "<class 'object'>"
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_a_copy_does_not_follow_the_original():
    tensor = torch.zeros(1)
    copy = to_portable((tensor,))
    tensor.add_(1)
    assert copy[0].item() == 0


def test_tensors_are_named_by_the_way_to_them():
    value = {"a": [torch.zeros(1), 3], "b": Pair(torch.zeros(1), None)}
    assert [name for name, _ in named_tensors(value, "out")] == ["out['a'][0]", "out['b'].left"]
