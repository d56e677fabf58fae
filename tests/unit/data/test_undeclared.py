"""State that nobody declared: what is found, saved, put back and named."""

import logging
from functools import partial

import pytest
import torch
from torch import nn

from hookloop.checkpoint.state.undeclared import Undeclared
from hookloop.objects.held import Root


class Places:
    """A run in small: a model and other objects, by name."""

    def __init__(self, optimizer=None, **others):
        self.roots = {"model": Root(nn.Linear(1, 1))}
        self.roots |= {name: Root(one) for name, one in others.items()}
        self.given = {} if optimizer is None else {"default": optimizer}

    def __call__(self):
        return self.roots

    def declared(self):
        return list(self.given.values())

    def optimizers(self):
        return self.given

    def freezes(self):
        return False


class Held:
    def __init__(self, value):
        self.value = value


def begun(optimizer=None, **others):
    undeclared = Undeclared(Places(optimizer, **others))
    undeclared.begin()
    return undeclared


def test_only_what_has_changed_is_saved():
    held = Held([1])
    undeclared = begun(step=[held])
    assert undeclared.state() == {}
    held.value.append(2)
    assert undeclared.state() == {"values": {"step.0.value": [1, 2]}}


def test_a_number_that_is_set_before_the_training_is_a_setting():
    held = Held(None)
    undeclared = begun(step=[held])
    held.value = 3
    undeclared.settle()
    assert undeclared.state() == {}


def test_a_tensor_that_is_made_before_the_training_is_state():
    held = Held(None)
    undeclared = begun(step=[held])
    held.value = torch.ones(1)
    undeclared.settle()
    assert list(undeclared.state()["values"]) == ["step.0.value"]


def test_what_goes_back_is_put_back_but_for_the_memory_of_hooks():
    ours, hooks = Held(1), Held(1)
    places = Places(step=[ours])
    places.roots["hooks.own"] = Root([hooks])
    undeclared = Undeclared(places)
    undeclared.begin()
    undeclared.settle()
    ours.value = hooks.value = 2
    undeclared.load({}, "file", trains=True)
    assert (ours.value, hooks.value) == (1, 2)


def test_a_module_that_the_training_does_not_change_is_compared(caplog):
    state = begun(loss=nn.BatchNorm1d(2)).state()
    assert set(state) == {"checksums"}
    other = nn.BatchNorm1d(2)
    other.running_mean += 1
    with caplog.at_level(logging.WARNING):
        begun(loss=other).load(state, "file", trains=False)
    assert "loss.running_mean" in caplog.text
    assert "loss.weight" not in caplog.text


def test_an_older_checkpoint_without_the_parameters_of_a_loss_is_named(caplog):
    loss = nn.Linear(1, 1)
    undeclared = begun(torch.optim.SGD(loss.parameters(), lr=1.0), loss=loss)
    with caplog.at_level(logging.WARNING):
        undeclared.load({}, "file", trains=False)
    assert "loss.weight" in caplog.text


def test_modules_besides_the_model_go_to_the_device():
    loss = nn.BatchNorm1d(2, affine=False)
    undeclared = Undeclared(Places(loss=loss), torch.device("meta"))
    undeclared.move()
    assert {one.device.type for one in loss.buffers()} == {"meta"}


def test_a_loop_of_objects_is_walked_once():
    held = Held(0)
    held.itself = held
    undeclared = begun(step=[held])
    held.value = 1
    assert undeclared.state() == {"values": {"step.0.value": 1}}


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)
        self.scale = 1


def set_true(module):
    module.scale = True


def add_attribute(module):
    module.added = 2


def set_inside(module):
    module.inner.in_features = 7


def replace_inside(module):
    module.inner = nn.Linear(1, 2)


def add_buffer(module):
    module.inner.register_buffer("count", torch.ones(1), persistent=False)


def register_object(module):
    module.register_forward_hook(partial(print, [1]))


def hold_a_list(module):
    module.scale = [1]


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (set_true, "scale"),
        (add_attribute, "added"),
        (set_inside, "inner.in_features"),
        (replace_inside, "inner.out_features"),
        (add_buffer, "inner.count"),
        (register_object, "forward_hooks[0].args.0"),
        (hold_a_list, "scale"),
    ],
)
def test_a_module_of_which_only_something_changes_is_looked_at(change, changed):
    places = Places()
    model = nn.Sequential(Scaled(), Scaled(), nn.ModuleList()).eval()
    places.roots["model"] = Root(model)
    undeclared = Undeclared(places)
    undeclared.begin()
    undeclared.settle()
    model.train()
    assert undeclared.state() == {}
    change(model[1])
    assert f"model.1.{changed}" in undeclared.state()["values"]
