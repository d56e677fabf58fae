import multiprocessing

import pytest
import torch

from hookloop.errors import ArgumentError
from hookloop_mmengine.runner import environment
from hookloop_mmengine.runner.environment import set_up, timeout_of


@pytest.fixture
def restored(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    yield
    multiprocessing.set_start_method(None, force=True)


def test_what_is_given_is_set(restored, monkeypatch):
    limits = []
    monkeypatch.setattr(environment.resource, "getrlimit", lambda which: (100, 5000))
    monkeypatch.setattr(environment.resource, "setrlimit", lambda which, both: limits.append(both))
    set_up({
        "cudnn_benchmark": True,
        "mp_cfg": {"mp_start_method": "spawn", "opencv_num_threads": 0},
        "dist_cfg": {"backend": "nccl", "timeout": 60},
        "resource_limit": 4096,
    })  # fmt: skip
    assert torch.backends.cudnn.benchmark
    assert multiprocessing.get_start_method() == "spawn"
    assert limits == [(4096, 5000)]


def test_the_time_that_processes_wait():
    assert timeout_of({"dist_cfg": {"timeout": 60}}) == 60
    assert timeout_of(None) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cudnn_benchmak": True}, "'cudnn_benchmak' is not offered.*cudnn_benchmark"),
        ({"mp_cfg": {"threads": 2}}, "env_cfg.mp_cfg: 'threads'"),
        ({"dist_cfg": {"init_backend": "deepspeed"}}, "env_cfg.dist_cfg: 'init_backend'"),
        ({"dist_cfg": {"backend": "mpi"}}, "backend='mpi' is not offered"),
    ],
)
def test_what_is_not_offered_is_named(given, message):
    with pytest.raises(ArgumentError, match=message):
        set_up(given)
