"""The code and the config of iMIX's document."""

import textwrap

import pytest
import torch
from tests.imix.tracing import train

from hookloop import dialects
from hookloop_dialects.imix import HOOKS, build_hooks

EMA = """
    # register the EMAIterHook by decorator and inherit from the parent class
    @HOOKS.register_module()
    class EMAIterHook(HookBase):

        def __init__(self):
            super().__init__()

        def before_train(self):
            if hasattr(self.trainer.model, 'module'):
                self.trainer.model.module.init_ema()
            else:
                self.trainer.model.init_ema()

        def after_train_iter(self):
            if hasattr(self.trainer.model, 'module'):
                self.trainer.model.module.update_ema()
            else:
                self.trainer.model.update_ema()
"""


IMPORTS = """
from imix.engine.hooks.base_hook import HookBase  # import HookBase
from imix.engine.hooks.builder import HOOKS  # import HOOKS register
"""


CUSTOM = """
custom_hooks = [
    dict(
        type='EMAIterHook',
        level=30,  # set the hook level,  level type : PriorityStatus, str, int
    ),
    dict(
        type='EMAEpochHook',
        level=40,
    ),
]
"""


class Averaging(torch.nn.Linear):
    """A model that keeps an average of itself, as those of iMIX do."""

    def __init__(self):
        super().__init__(4, 1)
        self.calls = []

    def init_ema(self):
        self.calls.append("init_ema")

    def update_ema(self):
        self.calls.append("update_ema")

    def load_bkp_state_dict(self):
        self.calls.append("load_bkp_state_dict")

    def save_checkpoint_ema(self, path, epoch):
        self.calls.append(("save_checkpoint_ema", epoch))


def test_the_documents_hook_and_its_config_run(tmp_path, monkeypatch):
    monkeypatch.setattr(HOOKS, "_registered", {})  # Other tests shall not find it.
    names, config = {}, {}
    with dialects.alias("imix"):
        exec(IMPORTS + textwrap.dedent(EMA), names)
    exec(CUSTOM, config)
    hooks = build_hooks(config["custom_hooks"])
    assert type(hooks[0]) is names["EMAIterHook"]
    assert [hook.level.name for hook in hooks] == ["NORMAL", "LOW"]
    model = Averaging()
    trainer = train(tmp_path, *hooks, model=model, max_epochs=2)
    epoch = ["update_ema"] * 3
    assert model.calls == [
        "init_ema", *epoch, "load_bkp_state_dict", ("save_checkpoint_ema", 0),
        *epoch, "load_bkp_state_dict", ("save_checkpoint_ema", 1),
    ]  # fmt: skip
    rows = {row.hook: row.priority for row in trainer.timetable()}
    assert (rows["ema_iter_hook"], rows["ema_epoch_hook"]) == (50, 70)


@pytest.mark.parametrize("name", [
    "AutogradAnomalyDetectHook", "AutogradProfilerHook", "CheckPointHook", "EvaluateHook",
    "IterationTimerHook", "LRSchedulerHook", "OptimizerHook", "Fp16OptimizerHook",
    "PeriodicLogger", "CommonMetricLoggerHook", "JSONLoggerHook", "TensorboardLoggerHook",
])  # fmt: skip
def test_every_hook_of_the_documents_table_is_registered(name):
    assert HOOKS.get(name).__name__ == name
