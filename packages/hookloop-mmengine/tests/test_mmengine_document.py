"""Every code and config example of MMEngine's page on hooks, run as it is written there.

Where the page writes ``...`` for the runner's other arguments, they are filled in; paths are those
of the test.
"""

import logging
from pathlib import Path

import pytest
import torch
from tests.downstream import mmengine_scenarios as scenarios

from hookloop import dialects


@pytest.fixture(autouse=True)
def aliases():
    with dialects.alias("mmengine"):
        yield


@pytest.fixture
def hooks_registry():
    """Remove the names that an example registers."""
    from mmengine.registry import HOOKS

    before = dict(HOOKS.module_dict)
    yield HOOKS
    HOOKS.module_dict.clear()
    HOOKS.module_dict.update(before)


def train(epochs=2, iters=None, metrics=None, names=("accuracy",), loader=None, **options):
    """Train with the settings of an example and those that the page leaves out."""
    cfg = {"by_epoch": True, "max_epochs": epochs}
    if iters is not None:
        cfg = {"by_epoch": False, "max_iters": iters}
    parts = {
        "default_hooks": {"logger": None},
        "train_cfg": cfg,
        "train_dataloader": loader or scenarios.make_loader(samples=2),
        "val_evaluator": scenarios.make_metric(metrics, names),
    }
    runner = scenarios.make_runner("work_dir", **(parts | options))
    runner.train()
    return runner


def files(directory="work_dir"):
    return sorted(path.name for path in Path(directory).glob("*.pth"))


def test_default_and_custom_hooks():
    default_hooks = dict(
        runtime_info=dict(type="RuntimeInfoHook"),
        timer=dict(type="IterTimerHook"),
        sampler_seed=dict(type="DistSamplerSeedHook"),
        logger=dict(type="LoggerHook"),
        param_scheduler=dict(type="ParamSchedulerHook"),
        checkpoint=dict(type="CheckpointHook", interval=1),
    )

    custom_hooks = [dict(type="EmptyCacheHook")]

    runner = train(default_hooks=default_hooks, custom_hooks=custom_hooks)
    assert files() == ["epoch_1.pth", "epoch_2.pth"]
    assert [type(hook).__name__ for hook in runner.hooks] == [
        "RuntimeInfoHook",
        "IterTimerHook",
        "DistSamplerSeedHook",
        "LoggerHook",
        "ParamSchedulerHook",
        "CheckpointHook",
        "EmptyCacheHook",
    ]


def test_save_by_interval():
    # The default value of by_epoch is True
    default_hooks = dict(checkpoint=dict(type="CheckpointHook", interval=5, by_epoch=True))
    train(20, default_hooks=default_hooks)
    assert files() == ["epoch_10.pth", "epoch_15.pth", "epoch_20.pth", "epoch_5.pth"]


def test_save_by_iterations():
    default_hooks = dict(checkpoint=dict(type="CheckpointHook", interval=5, by_epoch=False))
    train(iters=10, default_hooks=default_hooks)
    assert files() == ["iter_10.pth", "iter_5.pth"]


def test_keep_the_most_recent():
    default_hooks = dict(checkpoint=dict(type="CheckpointHook", interval=5, max_keep_ckpts=2))
    train(20, default_hooks=default_hooks)
    assert files() == ["epoch_15.pth", "epoch_20.pth"]


def test_save_the_best():
    default_hooks = dict(checkpoint=dict(type="CheckpointHook", save_best="auto"))
    train(3, metrics=[[0.1, 0.5, 0.3]], default_hooks=default_hooks)
    assert files() == ["best_accuracy_epoch_2.pth", "epoch_3.pth"]


def test_save_the_best_of_a_named_metric():
    best = dict(type="CheckpointHook", save_best="top-1", rule="greater")
    default_hooks = dict(checkpoint=best)
    train(3, metrics=[[0.1, 0.5, 0.3]], names=("top-1",), default_hooks=default_hooks)
    assert files() == ["best_top-1_epoch_2.pth", "epoch_3.pth"]


def test_save_elsewhere(tmp_path):
    directory = str(tmp_path / "path" / "of" / "directory")
    default_hooks = dict(checkpoint=dict(type="CheckpointHook", interval=5, out_dir=directory))
    train(5, default_hooks=default_hooks)
    assert files() == []
    assert files(Path(directory) / "work_dir") == ["epoch_5.pth"]
    assert Path("work_dir/last_checkpoint").is_file()


def test_publish():
    default_hooks = dict(
        checkpoint=dict(
            type="CheckpointHook",
            interval=1,
            save_best="accuracy",
            rule="less",
            published_keys=["meta", "state_dict"],
        )
    )
    train(2, metrics=[[0.1, 0.5]], default_hooks=default_hooks)
    assert len(files()) == 5
    for start in ("epoch_2-", "best_accuracy_epoch_1-"):
        (published,) = Path("work_dir").glob(f"{start}*.pth")
        assert sorted(torch.load(published)) == ["meta", "state_dict"]


def test_begin_to_save():
    default_hooks = dict(checkpoint=dict(type="CheckpointHook", interval=2, save_begin=5))
    train(10, default_hooks=default_hooks)
    # The page says 5, 7 and 9; the real one saves the last too, as save_last=True says.
    assert files() == ["epoch_10.pth", "epoch_5.pth", "epoch_7.pth", "epoch_9.pth"]


@pytest.mark.parametrize(
    "custom_hooks",
    [
        [dict(type="EMAHook")],
        [dict(type="EMAHook", ema_type="StochasticWeightAverage")],
        # The release operation is performed at the end of each epoch
        [dict(type="EmptyCacheHook", after_epoch=True)],
        [dict(type="SyncBuffersHook")],
    ],
)
def test_custom_hooks(custom_hooks):
    train(custom_hooks=custom_hooks)
    assert files() == ["epoch_1.pth", "epoch_2.pth"]


@pytest.mark.filterwarnings("ignore:.*profiler.*")
def test_profiler():
    custom_hooks = [dict(type="ProfilerHook", on_trace_ready=dict(type="tb_trace"))]
    runner = train(custom_hooks=custom_hooks)
    assert list((Path(runner.log_dir) / "tf_tracing_logs").iterdir())


def define_check_invalid_loss_hook():
    from mmengine.hooks import Hook
    from mmengine.registry import HOOKS

    @HOOKS.register_module()
    class CheckInvalidLossHook(Hook):
        """Check invalid loss hook.
        This hook will regularly check whether the loss is valid
        during training.
        Args:
            interval (int): Checking interval (every k iterations).
                Defaults to 50.
        """

        def __init__(self, interval=50):
            self.interval = interval

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            """All subclasses should override this method if they need any
            operations after each training iteration.
            Args:
                runner (Runner): The runner of the training process.
                batch_idx (int): The index of the current batch in the train loop.
                data_batch (dict or tuple or list, optional): Data from dataloader.
                outputs (dict, optional): Outputs from model.
            """
            if self.every_n_train_iters(runner, self.interval):
                assert torch.isfinite(outputs["loss"]), runner.logger.info(
                    "loss become infinite or NaN!"
                )

    return CheckInvalidLossHook


def spoil(model):
    for parameter in model.parameters():
        parameter.data.fill_(float("nan"))
    return model


def test_check_invalid_loss(hooks_registry):
    define_check_invalid_loss_hook()
    custom_hooks = [dict(type="CheckInvalidLossHook", interval=50)]
    train(2, custom_hooks=custom_hooks)
    custom_hooks = [dict(type="CheckInvalidLossHook", interval=2)]
    with pytest.raises(AssertionError) as caught:
        train(2, model=spoil(scenarios.make_model()), custom_hooks=custom_hooks)
    assert "check_invalid_loss_hook" in caught.value.__notes__[0]


def test_check_invalid_loss_with_a_priority(hooks_registry):
    define_check_invalid_loss_hook()
    custom_hooks = [dict(type="CheckInvalidLossHook", interval=50, priority="ABOVE_NORMAL")]
    runner = train(2, custom_hooks=custom_hooks)
    assert custom_hooks[0]["priority"] == "ABOVE_NORMAL"
    names = [hook.name for hook in runner.run.hooks]
    assert names.index("check_invalid_loss_hook") < names.index("iter_timer_hook")


@pytest.mark.slow
def test_priority_of_a_class(hooks_registry):
    from mmengine.hooks import Hook
    from mmengine.registry import HOOKS

    @HOOKS.register_module()
    class CheckInvalidLossHook(Hook):
        priority = "ABOVE_NORMAL"

    runner = train(2, custom_hooks=[dict(type="CheckInvalidLossHook")])
    (hook,) = [one for one in runner.run.hooks if one.name == "check_invalid_loss_hook"]
    assert hook.priority == "ABOVE_NORMAL"


def test_check_invalid_loss_in_a_native_trainer(hooks_registry):
    """The same class, unchanged, in hookloop's own Trainer."""
    from tests.tiny import make_model, make_trainer

    kind = define_check_invalid_loss_hook()
    make_trainer(hooks=[kind(interval=1)]).train()
    with pytest.raises(AssertionError):
        make_trainer(model=spoil(make_model()), hooks=[kind(interval=1)]).train()


def test_the_twenty_two_mount_points():
    from mmengine.hooks import Hook

    assert len(Hook.stages) == len(set(Hook.stages)) == 22
    assert all(callable(getattr(Hook, stage)) for stage in Hook.stages)


def test_pre_and_post_hooks(capsys):
    """The page's explanation of what a hook is."""
    pre_hooks = [(print, "hello")]
    post_hooks = [(print, "goodbye")]

    def main():
        for func, arg in pre_hooks:
            func(arg)
        print("do something here")
        for func, arg in post_hooks:
            func(arg)

    main()
    assert capsys.readouterr().out == "hello\ndo something here\ngoodbye\n"


def test_priorities_of_the_tables():
    from mmengine import hooks
    from mmengine.runner import get_priority

    listed = {
        "RuntimeInfoHook": 10,
        "IterTimerHook": 50,
        "DistSamplerSeedHook": 50,
        "LoggerHook": 60,
        "ParamSchedulerHook": 70,
        "CheckpointHook": 90,
        "EMAHook": 50,
        "EmptyCacheHook": 50,
        "SyncBuffersHook": 50,
        "ProfilerHook": 90,
    }
    assert {name: get_priority(getattr(hooks, name).priority) for name in listed} == listed


def test_every_name_of_the_api_page_is_there():
    from mmengine import hooks

    names = (
        "Hook CheckpointHook EMAHook LoggerHook NaiveVisualizationHook ParamSchedulerHook "
        "RuntimeInfoHook DistSamplerSeedHook IterTimerHook SyncBuffersHook EmptyCacheHook "
        "ProfilerHook NPUProfilerHook PrepareTTAHook EarlyStoppingHook"
    )
    assert sorted(names.split()) == sorted(hooks.__all__)


def test_the_log_goes_to_the_terminal_and_to_a_file(caplog):
    caplog.set_level(logging.INFO)
    runner = train(
        2, default_hooks={"logger": dict(type="LoggerHook", interval=1)}, log_level="INFO"
    )
    (log,) = Path(runner.log_dir).glob("*.log")
    assert "Epoch(train) [1][1/1]" in log.read_text()
