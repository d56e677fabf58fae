"""The examples of VISSL's, iMIX's and Pointrix's pages on hooks, by the command line.

Not run, because they are no programs: iMIX's line for its own ``__init__.py``, whose list ends with
``...``, and Pointrix's `DefaultTrainer`, from which the page leaves out what builds its parts.
"""

import json
from pathlib import Path

import pytest
import torch
from tests.documents import PYTHON, YAML, hookloop, train, write

pytestmark = pytest.mark.slow  # Each case is a run of the command line, or several trainings.


def lines_of(path):
    return Path(path).read_text(encoding="utf-8").splitlines()


# --- VISSL -------------------------------------------------------------------------------------

# The page's line with a link is cut short.
AWESOME = '''
from classy_vision.hooks.classy_hook import ClassyHook

class MyAwesomeNewHook(ClassyHook):
    """
    Logs the number of paramaters, forward pass FLOPs and activations of the model.
    Adapted from: classy_vision/hooks/model_complexity_hook.py#L20    # NOQA
    """

    # define all the functions that your hook should execute. If the hook
    # executes nothing for a particular function, mark it as a noop.
    # Example: if the hook only does something for `on_start', then set:
    #    on_phase_start = ClassyHook._noop
    #    on_forward = ClassyHook._noop
    #    on_loss_and_meter = ClassyHook._noop
    #    on_backward = ClassyHook._noop
    #    on_update = ClassyHook._noop
    #    on_step = ClassyHook._noop
    #    on_phase_end = ClassyHook._noop
    #    on_end = ClassyHook._noop

    def on_start(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute at the beginning of training
        ...

    def on_phase_start(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute at the beginning of each epoch
        # (training or test epoch). Use `task.train' boolean to detect if the current
        # epoch is train or test
        ...

    def on_forward(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after the model forward pass is done
        # should handle the train or test phase.
        # Use `task.train' boolean to detect if the current epoch is train or test
        ...

    def on_loss_and_meter(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after the loss and meters are
        # calculated
        ...

    def on_backward(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after backward pass is done. Note
        # that the model parameters are not yet updated
        ...

    def on_update(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after the model parameters are updated
        # by the optimizer following LR and weight decay
        ...

    def on_step(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after a training / test iteration
        # is done
        ...

    def on_phase_end(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after a phase (train or test)
        # is done
        ...

    def on_end(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute at the end of training
        # (or testing, feature extraction)
        ...
'''

ONLY_START = """
from classy_vision.hooks.classy_hook import ClassyHook

class OnlyStart(ClassyHook):
    on_phase_start = ClassyHook._noop
    on_forward = ClassyHook._noop
    on_loss_and_meter = ClassyHook._noop
    on_backward = ClassyHook._noop
    on_update = ClassyHook._noop
    on_step = ClassyHook._noop
    on_phase_end = ClassyHook._noop
    on_end = ClassyHook._noop

    def on_start(self, task: "tasks.ClassyTask") -> None:
        print("parameters:", sum(p.numel() for p in task.base_model.parameters()))
"""

EVENTS = (
    "on_start on_phase_start on_forward on_loss_and_meter on_backward on_update on_step "
    "on_phase_end on_end"
).split()


def test_the_template_of_vissl_is_called_at_every_event():
    # Each `...` becomes a line that writes down the event.
    text = AWESOME
    for event in EVENTS:
        before, after = text.split(f"def {event}(", 1)
        note = f"print('{event}', 'train' if task.train else 'test')"
        text = f"{before}def {event}({after.replace('        ...', f'        {note}', 1)}"
    listed = "hooks: [my_hook.MyAwesomeNewHook]\nmax_epochs: 1\n"
    write({"my_hook.py": text, "config.yaml": YAML + listed})
    printed = train("--alias", "vissl", "config.yaml")
    seen = [line for line in printed.splitlines() if line.split(" ")[0] in EVENTS]
    one_train = [f"{event} train" for event in EVENTS[2:7]]
    one_test = [f"{event} test" for event in ("on_forward", "on_loss_and_meter", "on_step")]
    assert seen == [
        "on_start train",
        "on_phase_start train",
        *2 * one_train,
        "on_phase_end train",
        "on_phase_start test",
        *2 * one_test,
        "on_phase_end test",
        "on_end test",
    ]


@pytest.mark.parametrize("hook", ["my_hook.MyAwesomeNewHook", "only_start.OnlyStart"])
def test_the_template_of_vissl_as_it_is(hook):
    files = {"my_hook.py": AWESOME, "only_start.py": ONLY_START}
    write({**files, "config.yaml": f"{YAML}max_epochs: 2\nhooks: [{hook}]\n"})
    printed = train("--alias", "vissl", "config.yaml")
    assert ("parameters: 15" in printed) is (hook == "only_start.OnlyStart")
    assert Path("run/epoch_2.pth").is_file()


def test_a_hook_by_a_setting_of_the_config():
    """The page's steps 2 and 3: a switch such as MONITOR_PERF_STATS adds the hook."""
    write(
        {
            "config.py": f"""{PYTHON}
from vissl.hooks import default_hook_generator

max_epochs = 2
_CONFIG = {{"HOOKS": {{"PERF_STATS": {{"MONITOR_PERF_STATS": True}}, "LOG_GPU_STATS": False}}}}
hooks = default_hook_generator(_CONFIG)
"""
        }
    )
    printed = train("--alias", "vissl", "config.py")
    assert "log_perf_time_metrics_hook" in printed
    assert "Rank: 0; [ep: 0] iter: 1; lr: 0.1; loss: " in printed  # VISSL's LogLossLrEtaHook.
    assert [json.loads(line)["iter"] for line in lines_of("stdout.json")] == [0, 1]
    assert {"metrics.json", "checkpoint.torch"} <= {path.name for path in Path("run").iterdir()}


# --- iMIX --------------------------------------------------------------------------------------

EMA = """
from .base_hook import HookBase  # import HookBase
from .builder import HOOKS  # import HOOKS register

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

EMA_CONFIG = """
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

# The model that the page's hooks call.
EMA_NET = """
import torch
from parts import Net


class EMANet(Net):
    calls = []

    def init_ema(self):
        print('init_ema')

    def update_ema(self):
        print('update_ema')

    def load_bkp_state_dict(self):
        print('load_bkp_state_dict')

    def save_checkpoint_ema(self, path, epoch):
        print('save_checkpoint_ema', epoch)
"""


@pytest.mark.parametrize("own", [False, True], ids=["catalogue", "defined"])
def test_ema_of_imix(own):
    config = PYTHON.replace("parts.Net", "ema_net.EMANet") + "max_epochs = 2\n" + EMA_CONFIG
    # The file of the page stands beside these two in iMIX.
    beside = {
        "hooks_of_imix/base_hook.py": "from imix.engine.hooks.base_hook import HookBase\n",
        "hooks_of_imix/builder.py": "from imix.engine.hooks.builder import HOOKS\n",
        "hooks_of_imix/__init__.py": "",
        "hooks_of_imix/ema.py": EMA,
    }
    imports = "imports = ['hooks_of_imix.ema']\n" if own else ""
    write({"config.py": config + imports, "ema_net.py": EMA_NET, **(beside if own else {})})
    printed = train("--alias", "imix", "config.py").splitlines()
    calls = [line.split(" ")[0] for line in printed if "ema" in line or "bkp" in line]
    calls = [line for line in calls if not line.startswith(("hooks", "completed", "ema_"))]
    epoch = ["update_ema", "update_ema", "load_bkp_state_dict", "save_checkpoint_ema"]
    assert calls == ["init_ema", *epoch, *epoch]
    listed = next(line for line in printed if line.startswith("hooks: "))
    assert listed.index("ema_iter_hook") < listed.index("ema_epoch_hook")


@pytest.mark.parametrize("level", ["HIGHEST", "HIGHER", "HIGH", "NORMAL", "LOW", "LOWER", "LOWEST"])
def test_levels_of_imix(level):
    config = PYTHON.replace("parts.Net", "ema_net.EMANet") + "max_epochs = 1\n"
    hooks = f"custom_hooks = [dict(type='EMAIterHook', level='{level}')]\n"
    write({"config.py": config + hooks, "ema_net.py": EMA_NET})
    result = hookloop("plan", "config.py")
    assert result.exit_code == 0 and "ema_iter_hook" in result.output


IMIX_HOOKS = {
    "AutogradAnomalyDetectHook": "",
    "AutogradProfilerHook": "wait=0, active=1",
    "CheckPointHook": "prefix='model', epoch_period=2",
    "EvaluateHook": "eval_function=dict(ref='parts.evaluate')",
    "IterationTimerHook": "",
    "OptimizerHook": "grad_clip=dict(max_norm=1.0)",
    "PeriodicLogger": "log_config_period=10",
    "CommonMetricLoggerHook": "",
    "JSONLoggerHook": "",
    "TensorboardLoggerHook": "",
}


@pytest.mark.filterwarnings("ignore:.*[pP]rofiler.*", "ignore:Anomaly Detection")
def test_the_default_hooks_of_imix():
    """The page's table, but for two rows.

    `LRSchedulerHook` is given objects by iMIX's engine: in a config, 'schedule' does its work.
    `Fp16OptimizerHook` needs a GPU.
    """
    listed = "".join(f"    dict(type='{n}', {rest}),\n" for n, rest in IMIX_HOOKS.items())
    write({"config.py": f"{PYTHON}max_epochs = 2\ncustom_hooks = [\n{listed}]\n"})
    evaluate = "\ndef evaluate():\n    return {'score': 0.5}\n"
    with Path("parts.py").open("a") as file:
        file.write(evaluate)
    printed = train("--alias", "imix", "config.py", "train_data.samples=160")
    lines = [line.split("  ")[:2] for line in printed.splitlines() if line.startswith("epoch: ")]
    # PeriodicLogger every 10 iterations, CommonMetricLoggerHook by itself every 20.
    assert lines == [["epoch: 0", f"iter: {n}"] for n in (10, 20, 20)] + [
        ["epoch: 1", f"iter: {n}"] for n in (30, 40, 40)
    ]
    assert "40 iterations in 0:00:" in printed and "score 0.5" in printed
    status = [json.loads(line) for line in lines_of("run/training_status.json")]
    assert [line["inner-iteration"] for line in status] == [19, 39] and "loss" in status[0]
    assert list(Path("run/runs").glob("events*")) and Path("run/profile/trace_1.json").is_file()
    assert Path("run/model_epoch1_model.pth").is_file() and Path("run/eval_result.json").is_file()


# --- Pointrix ----------------------------------------------------------------------------------

LOG_HOOK = '''
from pointrix.hook.base_hook import HOOK_REGISTRY, Hook

@HOOK_REGISTRY.register()
class LogHook(Hook):
    """
    A hook to log the training and validation losses.
    """

    def __init__(self):
        self.ema_loss_for_log = 0.
        self.bar_info = {}
        
        self.losses_test = {"L1_loss": 0., "psnr": 0., "ssims": 0., "lpips": 0.}

    def after_train_iter(self, trainner) -> None:
        """
        some operations after the training iteration ends.

        Parameters
        ----------
        trainner : Trainer
            The trainer object.
        """
        for param_group in trainner.optimizer.param_groups:
            name = param_group['name']
            if name == "point_cloud." + "position":
                pos_lr = param_group['lr']
                break

        log_dict = {
            "num_pt": len(trainner.model.point_cloud),
            "pos_lr": pos_lr
        }
        log_dict.update(trainner.loss_dict)

        for key, value in log_dict.items():
            if key == 'loss':
                self.ema_loss_for_log = 0.4 * value.item() + 0.6 * self.ema_loss_for_log
                self.bar_info.update(
                    {key: f"{self.ema_loss_for_log:.{7}f}"})

            if trainner.logger and key != "optimizer_params":
                trainner.logger.write_scalar(key, value, trainner.global_step)
'''  # noqa: W293 - as on the page

CLOUD = """
import torch
from torch import nn


class Points(nn.Module):
    def __init__(self, count=5):
        super().__init__()
        self.position = nn.Parameter(torch.zeros(count, 3))

    def __len__(self):
        return len(self.position)


class Cloud(nn.Module):
    def __init__(self):
        super().__init__()
        self.point_cloud = Points()

    def forward(self, batch):
        loss = (self.point_cloud.position - batch).square().mean()
        return {'loss': loss, 'L1_loss': loss.detach().sqrt()}


def views():
    return [torch.ones(5, 3)] * 3


def optimizer(model):
    group = {'name': 'point_cloud.position', 'params': [model.point_cloud.position], 'lr': 0.5}
    return torch.optim.SGD([group], lr=0.1)
"""


def test_the_log_hook_of_pointrix():
    write(
        {
            "log_hook.py": LOG_HOOK,
            "cloud.py": CLOUD,
            "config.yaml": """
max_iters: 4
model: cloud.Cloud
train_data: cloud.views
val_data: cloud.views
optimizer: cloud.optimizer
imports: [log_hook]
hooks:
  LogHook: {type: LogHook}
""",
        }
    )
    train("--alias", "pointrix", "config.yaml")
    records = [json.loads(line) for line in lines_of("run/metrics.jsonl")]
    logged = {name for record in records for name in record}
    assert {"num_pt", "pos_lr", "L1_loss"} <= logged, logged
    assert [record["num_pt"] for record in records if "num_pt" in record][-1] == 5
    assert [record["pos_lr"] for record in records if "pos_lr" in record][-1] == 0.5
    assert torch.load("run/iter_4.pth" if Path("run/iter_4.pth").is_file() else "run/epoch_2.pth")
