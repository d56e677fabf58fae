"""torch's profiler with VISSL's files."""

import pytest
import torch

from hookloop_dialects.vissl.utils.profiler import (
    Profiler,
    create_runtime_profiler,
    record_function,
)

SETTINGS = {"use_cpu": True, "use_cuda": True, "wait": 0, "warmup": 1, "active": 1}


@pytest.mark.slow
def test_a_profile_is_written_once(tmp_path):
    profiler = create_runtime_profiler(enabled=True, **SETTINGS)
    assert isinstance(profiler, Profiler)
    with profiler:
        for _ in range(2):
            with record_function("mine"):
                torch.ones(3).sum()
            profiler.step()
    profiler.__exit__(None, None, None)  # Hooks end it a second time.
    profiler.step()
    profiler.dump(str(tmp_path), 0)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "cpu_time_rank0.txt", "cuda_memory_usage_rank0.txt", "cuda_time_rank0.txt",
        "profiler_chrome_trace_rank0.json",
    ]  # fmt: skip
    (tmp_path / names[0]).unlink()
    profiler.dump(str(tmp_path), 0)
    assert not (tmp_path / names[0]).exists()


def test_without_a_profile_there_is_a_context_that_does_nothing():
    with create_runtime_profiler(enabled=False, **SETTINGS) as found:
        assert found is None
