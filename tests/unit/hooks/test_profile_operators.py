import json

import pytest
from tests.tiny import assert_same_bits, make_model, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import ProfileOperators


def names(tmp_path):
    return sorted(path.name for path in (tmp_path / "profile").iterdir())


def operators(path):
    return {
        event["name"] for event in json.loads(path.read_text())["traceEvents"] if "name" in event
    }


def test_each_repetition_leaves_a_trace_and_a_table(tmp_path):
    hook = ProfileOperators(wait=1, warmup=1, active=2, repeat=2)
    make_trainer(hooks=[hook], max_epochs=4, run_dir=tmp_path).train()
    assert names(tmp_path) == [
        "operators_1.txt",
        "operators_2.txt",
        "trace_1.json",
        "trace_2.json",
    ]
    for number in (1, 2):
        assert "aten::addmm" in operators(tmp_path / "profile" / f"trace_{number}.json")
        assert "aten::" in (tmp_path / "profile" / f"operators_{number}.txt").read_text()
    assert hook._profiler is None  # It ended before the run did.


def test_the_first_epoch_can_be_profiled_as_a_whole(tmp_path):
    class Count(Hook):
        def after_epoch(self, run):
            running.append(hook._profiler is not None)

    running = []
    hook = ProfileOperators(first_epoch=True, details=["shapes", "memory", "flops"])
    make_trainer(hooks=[hook, Count()], max_epochs=2, run_dir=tmp_path).train()
    assert names(tmp_path) == ["operators_1.txt", "trace_1.json"]
    assert running == [False, False]
    trace = json.loads((tmp_path / "profile" / "trace_1.json").read_text())
    forward = [e for e in trace["traceEvents"] if e.get("name") == "aten::addmm"]
    assert len(forward) == 2 * 3  # two layers in each of three iterations


def test_tensorboard_gets_a_trace_of_its_own(tmp_path):
    hook = ProfileOperators(wait=0, active=1, tensorboard=True)
    make_trainer(hooks=[hook], run_dir=tmp_path).train()
    (trace,) = (tmp_path / "profile" / "tensorboard").glob("*.pt.trace.json")
    assert "aten::addmm" in operators(trace)


def test_a_run_that_ends_or_fails_early_ends_the_profiler(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise ZeroDivisionError

    hook = ProfileOperators(wait=0, warmup=0, active=50)
    with pytest.raises(ZeroDivisionError):
        make_trainer(hooks=[Fail(), hook], run_dir=tmp_path).train()
    assert hook._profiler is None
    assert names(tmp_path) == ["operators_1.txt", "trace_1.json"]


def test_the_training_is_the_same(tmp_path):
    one, other = make_model(), make_model()
    make_trainer(model=one).train()
    make_trainer(model=other, hooks=[ProfileOperators()], run_dir=tmp_path).train()
    assert_same_bits(one, other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"active": 0}, "at least 1"),
        ({"wait": -1}, "0 or more"),
        ({"details": ["shape"]}, "Did you mean 'shapes'"),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message):
    with pytest.raises(HookError, match=message):
        ProfileOperators(**arguments)


def test_a_run_that_is_too_short_is_reported(tmp_path, caplog):
    make_trainer(hooks=[ProfileOperators(wait=2, warmup=1)], run_dir=tmp_path).train()
    assert "will write nothing: wait and warmup are 3 iterations, the run has 3" in caplog.text
