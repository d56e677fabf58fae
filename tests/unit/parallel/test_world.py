import pytest
import torch

from hookloop.errors import HookloopError
from hookloop.parallel.world import World, assume, choose_device


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("SLURM_STEP_ID", raising=False)


def test_without_a_launcher_there_is_one_process():
    assert World.from_environment() == World(0, 1)
    assert World().is_main and not World(1, 2).is_main


def test_a_launcher_of_one_process_is_accepted(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert World.from_environment() == World(0, 1)


def test_the_variables_of_torchrun_are_read():
    variables = {
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "4",
        "GROUP_RANK": "1",
        "TORCHELASTIC_RESTART_COUNT": "2",
    }
    world = World.from_environment(variables)
    assert world == World(5, 8, local_rank=1, local_size=4, node=1, restart=2)
    assert not world.is_main and not world.is_alone


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "1"}, "has set RANK but not WORLD_SIZE"),
        ({"WORLD_SIZE": "2"}, "has set WORLD_SIZE but not RANK"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 does not fit WORLD_SIZE=2"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK='one' must be a whole number"),
    ],
)
def test_variables_that_do_not_fit_are_rejected(variables, message):
    with pytest.raises(HookloopError, match=message):
        World.from_environment(variables)


def test_each_rank_takes_its_own_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    world = World(3, 4, local_rank=1, local_size=2, node=1)
    assert choose_device("auto", world) == torch.device("cuda", 1)
    assert choose_device("cuda", world) == torch.device("cuda", 1)
    with pytest.raises(HookloopError, match="all 2 ranks.*GPU"):
        choose_device("cuda:0", world)
    with pytest.raises(HookloopError, match="LOCAL_RANK.*2.*2.*GPUs"):
        choose_device("auto", World(2, 4, local_rank=2, local_size=4))


@pytest.mark.parametrize("wanted", ["cpu", torch.device("cpu"), "meta"])
def test_a_named_device_is_taken(wanted):
    assert choose_device(wanted) == torch.device(wanted)


def test_a_name_that_is_not_a_device_is_rejected_with_the_right_names():
    with pytest.raises(HookloopError, match="device='gpu'.*'auto'"):
        choose_device("gpu")


def test_a_gpu_that_is_missing_is_rejected(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(HookloopError, match="device='cuda:1'.*CUDA"):
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


def test_a_world_is_assumed_inside_of_a_context_only():
    with assume(World(0, 4)):
        assert World.from_environment() == World(0, 4)
        assert World.from_environment({"RANK": "1", "WORLD_SIZE": "2"}).size == 2
    assert World.from_environment() == World()
