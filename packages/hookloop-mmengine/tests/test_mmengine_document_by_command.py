"""Every example of MMEngine's page on hooks, word for word, by the command line.

Each example is trained twice where the page has both: its settings as a config of
`hookloop train`, and as a script with MMEngine's `Runner` under `hookloop run`, where the page's
``...`` for the other arguments is filled in.

Not run: the outline of a training without hooks and the one with ``call_hooks``, which the page
itself calls pseudo-code. They name a data set without samples, a model without layers and a
``max_epochs`` that is not defined.
"""

from pathlib import Path

import pytest
import torch
from tests.documents import PYTHON, hookloop, train, write

pytestmark = pytest.mark.slow  # Each case is a run of the command line, or several trainings.

DEFAULT_AND_CUSTOM = """
from mmengine.runner import Runner

default_hooks = dict(
    runtime_info=dict(type='RuntimeInfoHook'),
    timer=dict(type='IterTimerHook'),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    logger=dict(type='LoggerHook'),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(type='CheckpointHook', interval=1),
)

custom_hooks = [dict(type='EmptyCacheHook')]
"""

CHECKPOINTS = {
    "# The default value of by_epoch is True\n"
    "default_hooks = dict(checkpoint=dict(type='CheckpointHook', interval=5, by_epoch=True))": (
        20,
        ["epoch_10.pth", "epoch_15.pth", "epoch_20.pth", "epoch_5.pth"],
    ),
    "default_hooks = dict(checkpoint=dict(type='CheckpointHook', interval=5, by_epoch=False))": (
        5,
        ["iter_10.pth", "iter_5.pth"],
    ),
    "default_hooks = dict(checkpoint=dict(type='CheckpointHook', interval=5, max_keep_ckpts=2))": (
        20,
        ["epoch_15.pth", "epoch_20.pth"],
    ),
    "default_hooks = dict(checkpoint=dict(type='CheckpointHook', save_best='auto'))": (
        2,
        ["best_*_epoch_2.pth", "epoch_2.pth"],
    ),
    "default_hooks = dict(checkpoint=dict(type='CheckpointHook', interval=1, save_best='accuracy', "
    "rule='less', published_keys=['meta', 'state_dict']))": (
        2,
        [
            "best_accuracy_epoch_1-*.pth",
            "best_accuracy_epoch_1.pth",
            "epoch_1.pth",
            "epoch_2-*.pth",
            "epoch_2.pth",
        ],
    ),
    "default_hooks = dict(checkpoint=dict(type='CheckpointHook', interval=2, save_begin=5))": (
        10,
        # The page says 5, 7 and 9; the real one saves the last too, as save_last=True says.
        ["epoch_10.pth", "epoch_5.pth", "epoch_7.pth", "epoch_9.pth"],
    ),
}

CUSTOM = {
    "EMAHook": "custom_hooks = [dict(type='EMAHook')]",
    "StochasticWeightAverage": (
        "custom_hooks = [dict(type='EMAHook', ema_type='StochasticWeightAverage')]"
    ),
    "EmptyCacheHook": (
        "# The release operation is performed at the end of each epoch\n"
        "custom_hooks = [dict(type='EmptyCacheHook', after_epoch=True)]"
    ),
    "SyncBuffersHook": "custom_hooks = [dict(type='SyncBuffersHook')]",
    "ProfilerHook": (
        "custom_hooks = [dict(type='ProfilerHook', on_trace_ready=dict(type='tb_trace'))]"
    ),
}

CHECK_INVALID_LOSS = '''
import torch
from mmengine.registry import HOOKS
from mmengine.hooks import Hook

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
            assert torch.isfinite(outputs['loss']),\\
                runner.logger.info('loss become infinite or NaN!')
'''

# What the page's `...` stands for.
REST = """
import torch
from torch.utils.data import DataLoader
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel


class Net(BaseModel):
    def __init__(self, start=1.0):
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)
        torch.nn.init.constant_(self.linear.weight, start)

    def forward(self, inputs, targets, mode='tensor'):
        output = self.linear(inputs)
        if mode == 'loss':
            return {'loss': ((output - targets) ** 2).mean()}
        return list(output)


class Accuracy(BaseMetric):
    count = 0

    def process(self, data_batch, data_samples):
        self.results.append(1)

    def compute_metrics(self, results):
        self.count += 1
        return {'accuracy': self.count / 10}


def rest(epochs, **options):
    inputs = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    data = [(one, one.sum()[None]) for one in inputs]
    parts = dict(
        model=Net(), work_dir='run', train_cfg=dict(by_epoch=True, max_epochs=epochs), val_cfg={},
        train_dataloader=DataLoader(data, batch_size=2), val_evaluator=[Accuracy()],
        val_dataloader=DataLoader(data, batch_size=2),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)), default_scope=None,
    )
    return parts | options
"""


def files(directory="run"):
    return sorted(path.name for path in Path(directory).glob("*.pth"))


def assert_files(patterns):
    found = files()
    assert len(found) == len(patterns), found
    for name, pattern in zip(found, patterns, strict=True):
        assert Path(name).match(pattern), (name, pattern)


def config(example, epochs=2, **more):
    lines = [f"{name} = {value!r}" for name, value in more.items()]
    metrics = "metrics = dict(accuracy='parts.accuracy')"
    return "\n".join([PYTHON, f"max_epochs = {epochs}", metrics, *lines, example])


def script(example, epochs=2, options="custom_hooks=custom_hooks"):
    end = f"runner = Runner({options}, **rest({epochs}))\nrunner.train()  # start training\n"
    return f"from rest import rest\nfrom mmengine.runner import Runner\n{example}\n{end}"


def run(name="train.py"):
    result = hookloop("run", "--alias", "mmengine", name)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_default_and_custom_hooks():
    write({"config.py": config(DEFAULT_AND_CUSTOM)})
    printed = train("--alias", "mmengine", "config.py")
    lines = [line for line in printed.splitlines() if line.startswith("Epoch(train)")]
    assert [line.split("  ")[0] for line in lines] == [
        "Epoch(train) [1][2/2]",
        "Epoch(train) [2][2/2]",
    ]
    assert all("lr: 1.0000e-01" in line and "  loss: " in line for line in lines), lines
    assert "Epoch(val) [2][2/2]" in printed and "accuracy: " in printed
    assert files() == ["epoch_1.pth", "epoch_2.pth"]
    planned = hookloop("plan", "--alias", "mmengine", "config.py").output
    assert "empty_cache" in planned


def test_default_and_custom_hooks_in_a_runner():
    options = "default_hooks=default_hooks, custom_hooks=custom_hooks"
    write({"rest.py": REST, "train.py": script(DEFAULT_AND_CUSTOM, options=options)})
    assert "Epoch(train) [1][2/2]" in run()
    assert files() == ["epoch_1.pth", "epoch_2.pth"]


@pytest.mark.parametrize("example", CHECKPOINTS)
@pytest.mark.parametrize("by", ["config", "script"])
def test_checkpoints(example, by):
    epochs, expected = CHECKPOINTS[example]
    if by == "config":
        write({"config.py": config(example, epochs, default_hooks={})})
        train("config.py")
    else:
        text = script(example, epochs, "default_hooks=default_hooks")
        write({"rest.py": REST, "train.py": text})
        run()
    assert_files(expected)
    for file in Path("run").glob("*-*.pth"):
        assert sorted(torch.load(file)) == ["meta", "state_dict"]


@pytest.mark.parametrize("by", ["config", "script"])
def test_another_directory(by, tmp_path):
    directory = tmp_path / "path" / "of" / "directory"
    example = (
        "default_hooks = dict(checkpoint=dict(type='CheckpointHook', interval=5, "
        f"out_dir={str(directory)!r}))"
    )
    if by == "config":
        write({"config.py": config(example, 5)})
        train("config.py")
    else:
        write({"rest.py": REST, "train.py": script(example, 5, "default_hooks=default_hooks")})
        run()
    assert files() == [] and files(directory / "run") == ["epoch_5.pth"]
    assert str(directory) in Path("run/last_checkpoint").read_text()


@pytest.mark.parametrize("example", CUSTOM)
@pytest.mark.parametrize("by", ["config", "script"])
@pytest.mark.filterwarnings("ignore:.*profiler.*")
def test_custom_hooks(example, by):
    if by == "config":
        write({"config.py": config(CUSTOM[example])})
        train("config.py")
    else:
        write({"rest.py": REST, "train.py": script(CUSTOM[example])})
        run()
    assert files() == ["epoch_1.pth", "epoch_2.pth"]
    if example == "ProfilerHook":
        assert len(list(Path("run").glob("*/tf_tracing_logs/*"))) == 1
    if example in ("EMAHook", "StochasticWeightAverage"):
        saved = torch.load("run/epoch_2.pth", weights_only=False)
        assert "ema_state_dict" in saved or "average" in str(list(saved)), list(saved)


@pytest.mark.parametrize("rest", ["", ", priority='ABOVE_NORMAL'"])
@pytest.mark.parametrize("by", ["config", "script"])
def test_check_invalid_loss(by, rest):
    example = f"custom_hooks = [\n    dict(type='CheckInvalidLossHook', interval=50{rest})\n]"
    if by == "config":
        text = config(example, imports=["check_invalid_loss"])
        write({"config.py": text, "check_invalid_loss.py": CHECK_INVALID_LOSS})
        printed = train("--alias", "mmengine", "config.py")
        assert ("check_invalid_loss_hook, timing" in printed) is bool(rest)
    else:
        text = script(CHECK_INVALID_LOSS + example)
        write({"rest.py": REST, "train.py": text})
        run()
    assert files() == ["epoch_1.pth", "epoch_2.pth"]


def test_an_invalid_loss_is_found():
    example = "custom_hooks = [dict(type='CheckInvalidLossHook', interval=2)]"
    text = config(example, imports=["check_invalid_loss"], default_hooks={"nan": None})
    write({"config.py": text, "check_invalid_loss.py": CHECK_INVALID_LOSS})
    command = ["train", "--alias", "mmengine", "config.py", "model.start=nan", "--run-dir", "run"]
    result = hookloop(*command)
    assert result.exit_code == 1
    assert "loss become infinite or NaN!" in result.output
    assert "check_invalid_loss_hook" in result.output and "after_train_iter" in result.output


def test_priority_of_a_class():
    hook = """
from mmengine.registry import HOOKS
from mmengine.hooks import Hook

@HOOKS.register_module()
class CheckInvalidLossHook(Hook):
    priority = 'ABOVE_NORMAL'

    def before_train(self, runner):
        print('begun')
"""
    example = "custom_hooks = [dict(type='CheckInvalidLossHook')]"
    write({"hook.py": hook, "config.py": config(example, imports=["hook"])})
    printed = train("--alias", "mmengine", "config.py")
    assert "check_invalid_loss_hook, timing" in printed and "begun" in printed


def test_pre_and_post_hooks():
    write(
        {
            "main.py": """
pre_hooks = [(print, 'hello')]
post_hooks = [(print, 'goodbye')]

def main():
    for func, arg in pre_hooks:
        func(arg)
    print('do something here')
    for func, arg in post_hooks:
        func(arg)

main()
"""
        }
    )
    assert run("main.py") == "hello\ndo something here\ngoodbye\n"


def test_forward_hook():
    """The page prints ``module.name``, which torch's modules do not have: Python fails as well."""
    text = """
import torch
import torch.nn as nn

def forward_hook_fn(module, input, output):
    print(f'"forward_hook_fn" is invoked by {module.name}')
    print('weight:', module.weight.data)
    print('bias:', module.bias.data)
    print('input:', input)
    print('output:', output)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        y = self.fc(x)
        return y

model = Model()
# Register forward_hook_fn to each submodule of model
for module in model.children():
    module.register_forward_hook(forward_hook_fn)

x = torch.Tensor([[0.0, 1.0, 2.0]])
y = model(x)
"""
    write({"main.py": text, "named.py": text.replace("model = Model()", NAMED)})
    result = hookloop("run", "main.py")
    assert result.exit_code == 1 and "'Linear' object has no attribute 'name'" in result.output
    assert '"forward_hook_fn" is invoked by fc' in run("named.py")


NAMED = "model = Model()\nmodel.fc.name = 'fc'"

API = (
    "CheckpointHook EMAHook LoggerHook NaiveVisualizationHook ParamSchedulerHook RuntimeInfoHook "
    "DistSamplerSeedHook IterTimerHook SyncBuffersHook EmptyCacheHook ProfilerHook"
).split()


@pytest.mark.filterwarnings("ignore:.*profiler.*")
def test_every_hook_of_the_api_page_by_its_name():
    listed = ", ".join(f"dict(type='{name}')" for name in API)
    early = "dict(type='EarlyStoppingHook', monitor='loss', patience=1, rule='less')"
    write({"config.py": config(f"custom_hooks = [{listed}, {early}]", default_hooks={})})
    printed = train("config.py")
    assert all(name in printed for name in ("naive_visualization_hook", "early_stopping_hook"))


def test_what_needs_an_npu_is_rejected():
    write({"config.py": config("custom_hooks = [dict(type='NPUProfilerHook')]")})
    result = hookloop("train", "config.py", "--run-dir", "run")
    assert result.exit_code != 0 and "NPU" in result.output
