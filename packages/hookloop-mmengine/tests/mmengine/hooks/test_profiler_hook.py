"""Torch's profiler over the first epoch or iterations."""

import json
from types import SimpleNamespace

import pytest

from hookloop.errors import HookError
from hookloop_mmengine.hooks import Hook, NPUProfilerHook, ProfilerHook


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"profile_times": 2}, ValueError, "too slow: set by_epoch=False"),
        ({"profile_times": 0}, ValueError, "should be greater than 0, but got 0"),
        ({"on_trace_ready": {"type": "x"}}, ValueError, "log_trace.*but got 'x'"),
        ({"on_trace_ready": 3}, ValueError, "log_trace"),
        ({"activity_with_cpu": False}, HookError, "needs activity_with_cpu or activity_with_cuda"),
    ],
)
def test_wrong_arguments_are_rejected(options, error, message):
    with pytest.raises(error, match=message):
        ProfilerHook(**options)


def test_more_iterations_than_the_training_has_are_rejected(run):
    with pytest.raises(ValueError, match=r"profile_times \(9\) is greater than the 6 iterations"):
        run(ProfilerHook(by_epoch=False, profile_times=9))


class Look(Hook):
    priority = "LOWEST"

    def __init__(self, profiler):
        self.profiler, self.active = profiler, []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.active.append(self.profiler._profiler is not None)


@pytest.mark.parametrize(
    ("options", "active"),
    [
        ({}, [True, True, False, False]),
        ({"by_epoch": False, "profile_times": 1}, [False, False, False, False]),
        ({"by_epoch": False, "profile_times": 3}, [True, True, False, False]),
    ],
    ids=str,
)
def test_it_ends_after_the_epoch_or_the_iterations(run, options, active):
    profiler = ProfilerHook(**options)
    look = Look(profiler)
    run(profiler, look, limit=2)
    assert look.active == active


def test_a_trace_is_written(run, tmp_path):
    path = tmp_path / "trace.json"
    run(ProfilerHook(by_epoch=False, json_trace_path=str(path)), limit=1)
    assert json.loads(path.read_text())["traceEvents"]


def test_a_function_gets_the_profile(run):
    profiles = []
    run(ProfilerHook(by_epoch=False, on_trace_ready=profiles.append), limit=1)
    assert len(profiles) == 1
    assert profiles[0].key_averages()


def test_a_table_is_logged(run):
    messages = []
    hook = ProfilerHook(on_trace_ready={"type": "log_trace", "row_limit": 3})
    handler = hook._handler(SimpleNamespace(logger=SimpleNamespace(info=messages.append)))
    run(ProfilerHook(by_epoch=False, on_trace_ready=handler), limit=1)
    assert "Self CPU" in messages[0]


def test_traces_for_tensorboard_go_to_the_log_directory(run, tmp_path):
    run(ProfilerHook(by_epoch=False, on_trace_ready={"type": "tb_trace"}), limit=1)
    assert list(tmp_path.glob("*/tf_tracing_logs/*.json"))


def test_a_profile_that_a_failure_cut_short_is_closed(run):
    class Fail(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            raise RuntimeError("broken")

    profiler = ProfilerHook()
    with pytest.raises(RuntimeError, match="broken"):
        run(profiler, Fail())
    assert profiler._profiler is None
    run(ProfilerHook(), limit=1)  # A second profiler can start.


def test_a_schedule_is_passed_to_torch(run):
    steps = []
    schedule = {"wait": 1, "warmup": 1, "active": 1, "repeat": 1}
    hook = ProfilerHook(
        by_epoch=False, profile_times=4, schedule=schedule,
        on_trace_ready=lambda profile: steps.append(profile.step_num),
    )  # fmt: skip
    run(hook, limit=2)
    assert steps == [3]


def test_an_npu_is_not_supported():
    with pytest.raises(HookError, match="Ascend NPU.*ProfileOperators"):
        NPUProfilerHook()
    with pytest.raises(ValueError, match="begin 2 should be less than end 1"):
        NPUProfilerHook(begin=2, end=1)
