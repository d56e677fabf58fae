import pytest
import torch

from hookloop.errors import HookloopError
from hookloop.parallel.world import World, choose_device


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


def test_without_a_launcher_there_is_one_process():
    assert World.from_environment() == World(0, 1)
    assert World().is_main and not World(1, 2).is_main


def test_a_launcher_of_one_process_is_accepted(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert World.from_environment() == World(0, 1)


def test_a_launcher_of_several_processes_is_rejected(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(HookloopError, match="WORLD_SIZE is 4, but this version trains in one"):
        World.from_environment()


@pytest.mark.parametrize("wanted", ["cpu", torch.device("cpu"), "meta"])
def test_a_named_device_is_taken(wanted):
    assert choose_device(wanted) == torch.device(wanted)


def test_a_name_that_is_not_a_device_is_rejected_with_the_right_names():
    with pytest.raises(HookloopError, match="device='gpu' is not a device of torch. Write 'auto'"):
        choose_device("gpu")


def test_a_gpu_that_is_missing_is_rejected(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(HookloopError, match="device='cuda:1': torch finds no CUDA device"):
        choose_device("cuda:1")


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [
        (True, True, torch.device("cuda", 2)),
        (True, False, torch.device("cuda", 2)),
        (False, True, torch.device("mps")),
        (False, False, torch.device("cpu")),
    ],
)
def test_auto_is_the_best_device_there_is(monkeypatch, cuda, mps, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert choose_device("auto") == expected
