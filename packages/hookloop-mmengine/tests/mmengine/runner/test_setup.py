"""What a runner builds of its arguments, and the tasks it carries out."""

from pathlib import Path
from typing import ClassVar

import pytest
import torch
from tests.mmengine.parts import Count, Net, Numbers, Seen, collate, make_loader

from hookloop.hooks import WriteCSV
from hookloop_mmengine.evaluator import Evaluator
from hookloop_mmengine.hooks import EmptyCacheHook, Hook, IterTimerHook
from hookloop_mmengine.logging import MessageHub, MMLogger
from hookloop_mmengine.registry import MODELS
from hookloop_mmengine.runner import LogProcessor
from hookloop_mmengine.runner.setup import DEFAULT_HOOKS, build_hook
from hookloop_mmengine.visualization import Visualizer


def kinds(runner):
    return [type(hook).__name__ for hook in runner.hooks]


def test_default_hooks_come_first_in_mmengines_order(make):
    assert kinds(make(Seen())) == [entry["type"] for entry in DEFAULT_HOOKS.values()] + ["Seen"]


def test_default_hooks_are_replaced_removed_and_added(make):
    found = kinds(
        make(default_hooks={"logger": None, "timer": Seen(), "more": {"type": "EmptyCacheHook"}})
    )
    assert found == [
        "RuntimeInfoHook", "Seen", "DistSamplerSeedHook", "ParamSchedulerHook", "CheckpointHook",
        "EmptyCacheHook",
    ]  # fmt: skip
    assert kinds(make(default_hooks=dict.fromkeys(DEFAULT_HOOKS))) == []


def test_a_hook_that_is_not_there_cannot_be_removed(make):
    with pytest.raises(AssertionError, match="no 'loger' to remove; the names are: runtime_info"):
        make(default_hooks={"loger": None})


def test_a_hook_is_built_with_its_priority():
    cfg = {"type": "IterTimerHook", "priority": "LOW"}
    hook = build_hook(cfg)
    assert isinstance(hook, IterTimerHook)
    assert hook.priority == "LOW"
    assert cfg == {"type": "IterTimerHook", "priority": "LOW"}  # MMEngine removes the priority.
    assert build_hook(hook) is hook


@pytest.mark.parametrize("entry", [Hook, "IterTimerHook", 3, object()])
def test_what_is_not_a_hook_is_rejected(entry):
    with pytest.raises(TypeError, match="hook should be an instance of Hook or dict, but got"):
        build_hook(entry)


def test_a_hook_that_is_set_to_do_nothing_is_a_hook(run):
    assert run(EmptyCacheHook(after_epoch=False), limit=1).epoch == 1


def test_names_files_and_logs(make, tmp_path):
    first, second = (make(experiment_name="toy") for _ in range(2))
    assert first.experiment_name.startswith("toy_")
    assert first.experiment_name != second.experiment_name  # Also within one second.
    assert first.message_hub is MessageHub.get_instance(first.experiment_name)
    assert first.logger is MMLogger.get_instance(first.experiment_name)
    assert first.log_dir == str(tmp_path / first.timestamp)
    assert isinstance(first.visualizer, Visualizer)
    assert isinstance(first.log_processor, LogProcessor)


def test_a_processor_and_a_visualizer_are_described_or_given(make):
    processor, visualizer = LogProcessor(num_digits=2), Visualizer("own")
    runner = make(log_processor=processor, visualizer=visualizer)
    assert runner.log_processor is processor
    assert runner.visualizer is visualizer
    assert make(log_processor={"window_size": 3}).log_processor.window_size == 3


def test_the_config_is_written(make, tmp_path):
    runner = make(cfg={"a": 1})
    assert (tmp_path / f"{runner.timestamp}.py").read_text() == "a = 1\n"
    assert (Path(runner.log_dir) / "vis_data" / "config.py").read_text() == "a = 1\n"
    make()
    assert len(list(tmp_path.glob("*.py"))) == 1


def test_a_model_is_given_or_described(make):
    MODELS.register_module(name="ToyNet", module=Net)
    try:
        assert isinstance(make(model={"type": "ToyNet"}).model, Net)
    finally:
        del MODELS.module_dict["ToyNet"]
    with pytest.raises(TypeError, match="model should be a nn.Module object or dict, but got 3"):
        make(model=3)


@pytest.mark.parametrize(
    "evaluator", [Evaluator(Count()), Count(), [Count()], {"metrics": [Count()]}]
)
def test_evaluators_in_every_form(make, evaluator):
    assert make(val_evaluator=evaluator).val() == {"count/samples": 4.0}


def test_learning_rates_are_scaled_with_the_batch_size(run):
    scaling = {"enable": True, "base_batch_size": 8}
    assert run(limit=1, auto_scale_lr=scaling).optim_wrapper.get_lr() == {"lr": [0.025]}
    scaling["enable"] = False
    assert run(limit=1, auto_scale_lr=scaling).optim_wrapper.get_lr() == {"lr": [0.1]}


def test_a_test_after_the_training_sees_its_counters(run):
    seen = Seen()
    run(seen).test()
    assert seen.counters == [(3, 6)]


def test_a_hook_tests_in_the_middle_of_the_training(run):
    class TestToo(Hook):
        metrics: ClassVar = []

        def after_val(self, runner):
            self.metrics.append(runner.test())

    seen, plain = Seen(), Seen()
    hook = TestToo()
    run(hook, seen)
    run(plain)
    assert seen.counters == [(1, 2), (2, 4), (3, 6)]
    assert hook.metrics == [{"count/samples": 4.0}] * 3
    assert seen.weights == plain.weights


def test_tasks_need_their_arguments(make):
    runner = make(test_cfg=None, test_dataloader=None, test_evaluator=None)
    with pytest.raises(RuntimeError, match="test_dataloader, test_cfg, test_evaluator are needed"):
        runner.test()


def test_a_training_by_iterations_shuffles_each_pass(run):
    shuffled = {
        "dataset": Numbers(),
        "batch_size": 1,
        "collate_fn": collate,
        "sampler": {"type": "DefaultSampler", "shuffle": True},
    }
    seen = Seen()
    options = {"by_epoch": False, "limit": 12, "randomness": {"seed": 3}}
    run(seen, train_dataloader=shuffled, **options)
    passes = [seen.inputs[start : start + 4] for start in (0, 4, 8)]
    assert all(sorted(values) == [0, 1, 2, 3] for values in passes)
    assert len({tuple(values) for values in passes}) > 1


def test_a_training_by_iterations_is_one_epoch_to_a_schedule_by_epochs(run):
    seen = Seen()
    schedule = {"type": "MultiStepLR", "milestones": [1, 2], "by_epoch": True}
    run(seen, by_epoch=False, limit=7, param_scheduler=schedule)
    assert seen.rates == [0.1]  # It ends when the epoch does.


def test_a_native_writer_gets_the_numbers_of_a_runner(run, tmp_path):
    run(WriteCSV(), limit=1)
    (table,) = tmp_path.glob("*.csv")
    assert "loss" in table.read_text().splitlines()[0]


def test_hooks_added_later_take_part(make):
    runner, seen = make(limit=1), Seen()
    runner.register_hook(seen)
    runner.register_custom_hooks([{"type": "EmptyCacheHook"}])
    runner.train()
    assert len(seen.weights) == 2
    assert kinds(runner)[-2:] == ["Seen", "EmptyCacheHook"]


def test_before_a_run_the_counters_are_zero(make):
    runner = make(limit=4)
    assert (runner.iter, runner.epoch, runner.max_epochs) == (0, 0, 4)
    assert isinstance(runner.model, torch.nn.Module)
    assert runner.train_dataloader.batch_size == make_loader().batch_size
