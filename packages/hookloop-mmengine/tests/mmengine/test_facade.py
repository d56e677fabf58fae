"""The run as MMEngine's hooks see it in a native Trainer."""

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop.engine.hook import Hook as NativeHook
from hookloop.errors import HookError
from hookloop.hooks import StepSchedules
from hookloop_mmengine.config import Config
from hookloop_mmengine.hooks import CheckpointHook, Hook
from hookloop_mmengine.optim import OptimWrapper, OptimWrapperDict
from hookloop_mmengine.runner import LogProcessor
from hookloop_mmengine.visualization import EmittingVisualizer


class At(Hook):
    """Calls a function at a point, once."""

    def __init__(self, point, function):
        self.result = None

        def method(runner, **arguments):
            if self.result is None:
                self.result = function(runner)

        setattr(self, point, method)


@pytest.fixture
def look(tmp_path):
    """Returns what a function of the runner finds during a training."""

    def look(function, *hooks, point="before_train", **options):
        hook = At(point, function)
        trainer = make_trainer(hooks=[hook, *hooks], run_dir=tmp_path / "run", **options)
        trainer.train()
        return hook.result

    return look


def test_facts_of_the_run(look, tmp_path):
    found = look(
        lambda r: {
            "work_dir": r.work_dir,
            "log_dir": r.log_dir.startswith(r.work_dir) and r.timestamp in r.log_dir,
            "name": r.experiment_name.startswith("run_"),
            "rank": (r.rank, r.world_size, r.distributed),
            "cfg": isinstance(r.cfg, Config),
            "limits": (r.max_epochs, r.max_iters),
            "logger": r.logger.name,
            "hub": r.message_hub is r.message_hub,
            "processor": isinstance(r.log_processor, LogProcessor) and r.log_processor.by_epoch,
            "visualizer": isinstance(r.visualizer, EmittingVisualizer),
        },
        max_epochs=2,
    )
    assert found == {
        "work_dir": str(tmp_path / "run"), "log_dir": True, "name": True, "rank": (0, 1, False),
        "cfg": True, "limits": (2, 6), "logger": "mmengine", "hub": True, "processor": True,
        "visualizer": True,
    }  # fmt: skip


def test_a_training_by_iterations_has_one_epoch(look):
    found = look(
        lambda r: (r.max_epochs, r.max_iters, r.epoch, r.log_processor.by_epoch), max_iters=5
    )
    assert found == (1, 5, 0, False)


def test_data_and_loops(look):
    train, val = make_data(), make_data()
    found = look(
        lambda r: (r.train_dataloader, r.val_dataloader, r.test_dataloader, r.test_loop),
        train_data=train,
        val_data=val,
    )
    assert found[0].dataset is train.dataset  # Seen through, so that new workers can be asked for.
    assert found[1].dataset is val.dataset
    assert found[2:] == (None, None)


def test_one_optimizer_is_wrapped(look):
    wrapper = look(lambda r: r.optim_wrapper)
    assert type(wrapper) is OptimWrapper
    assert wrapper.get_lr() == {"lr": [0.05]}


def test_several_optimizers_are_wrapped_by_name(look):
    model = make_model()
    optimizers = {
        "a": torch.optim.SGD(model[0].parameters(), lr=0.1),
        "b": torch.optim.SGD(
            [{"params": [model[2].weight], "lr": 0.3}, {"params": [model[2].bias]}], lr=0.2
        ),
    }
    wrapper = look(lambda r: r.optim_wrapper, model=model, optimizer=optimizers)
    assert isinstance(wrapper, OptimWrapperDict)
    # No base rate: the run's own schedules would not change it.
    assert wrapper.get_lr() == {"a.lr": [0.1], "b.lr": [0.3, 0.2]}


def test_schedulers_are_those_of_the_run(look):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    parts = {"model": model, "optimizer": optimizer, "schedule": scheduler}
    (found,) = look(lambda r: r.param_schedulers, StepSchedules(), **parts)
    assert found.scheduler is scheduler
    assert (found.by_epoch, found.need_val_args) == (False, False)
    assert (found.last_step, found.step_size) == (scheduler.last_epoch, 1)


def test_the_model_can_be_replaced(look):
    other = make_model(seed=9)

    def replace(runner):
        runner.model = other
        return runner.model

    assert look(replace) is other


def test_hooks_are_shown_as_their_authors_wrote_them(look):
    class Plain(NativeHook):
        def before_train(self, run): ...

    plain = Plain()
    found = look(lambda r: r.hooks, plain)
    assert [type(hook) for hook in found] == [At, Plain]


def test_a_hook_is_registered_during_the_run(look):
    calls = []

    class Late(Hook):
        def __init__(self, name="late"):
            self.label = name

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            calls.append((self.label, runner.iter))

    def register(runner):
        runner.register_hook(Late("low"), priority="LOW")
        runner.register_hook(Late("high"), priority=10)
        return True

    look(register)
    assert calls[:2] == [("high", 0), ("low", 0)]
    assert len(calls) == 6


def test_a_hook_is_registered_by_its_config(look):
    found = look(lambda r: (r.register_hook({"type": "IterTimerHook"}), r.hooks))
    assert type(found[1][-1]).__name__ == "IterTimerHook"


def test_a_method_of_every_hook_is_called(look):
    class Own(Hook):
        def my_point(self, runner, x):
            self.x = x

    own = Own()
    own_result = look(lambda r: r.call_hook("my_point", x=7) or True, own)
    assert own_result
    assert own.x == 7
    assert look(lambda r: r.call_hook("no_such_point") or True)


def test_a_checkpoint_is_requested(look, tmp_path):
    def save(runner):
        runner.save_checkpoint(runner.work_dir, "mine.pth", save_optimizer=False)
        runner.save_checkpoint(str(tmp_path / "other"), "far.pth")
        return True

    look(save, point="after_train_iter")
    saved = torch.load(tmp_path / "run" / "mine.pth", weights_only=True)
    assert saved["model"]
    assert not saved.get("optimizers")
    assert (tmp_path / "other" / "far.pth").is_file()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("optimizer", "runner.optim_wrapper.optimizer"),
        ("log_buffer", "runner.message_hub"),
        ("train_dataloder", "'train_dataloader'"),
        ("zebra", "Available: .*train_loop"),
    ],
)
def test_an_attribute_that_is_not_offered_names_the_way(look, name, hint):
    with pytest.raises(HookError, match=f"asks for runner.{name}.*{hint}"):
        look(lambda r: getattr(r, name))


def test_hooks_may_set_attributes_of_their_own(look):
    def set_and_get(runner):
        assert not hasattr(runner, "zebra")
        runner.zebra = 3
        return runner.zebra

    assert look(set_and_get, CheckpointHook()) == 3
