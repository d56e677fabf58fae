"""The trainer and the hook of Pointrix's document."""

import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.pointrix.cloud import Give, Kept, tracing, train, train_cloud
from tests.tiny import make_data

from hookloop import dialects
from hookloop_dialects.pointrix import HOOK_REGISTRY, parse_hooks

# The trainer, verbatim.
TRAINER = '''
    class DefaultTrainer:
        """
        The default trainer class for training and testing the model.

        Parameters
        ----------
        cfg : dict
            The configuration dictionary.
        exp_dir : str
            The experiment directory.
        device : str, optional
            The device to use, by default "cuda".
        """
        def __init__(self, cfg: Config, exp_dir: Path, device: str = "cuda") -> None:
            super().__init__()
            self.exp_dir = exp_dir
            self.device = device

            self.start_steps = 1
            self.global_step = 0

            # build config
            self.cfg = parse_structured(self.Config, cfg)
            # build hooks
            self.hooks = parse_hooks(self.cfg.hooks)
            self.call_hook("before_run")
            # build datapipeline

            # some code are ignored

        @torch.no_grad()
        def validation(self):
            self.val_dataset_size = len(self.datapipeline.validation_dataset)
            for i in range(0, self.val_dataset_size):
                self.call_hook("before_val_iter")
                batch = self.datapipeline.next_val(i)
                render_dict = self.model(batch)
                render_results = self.renderer.render_batch(render_dict, batch)
                self.metric_dict = self.model.get_metric_dict(render_results, batch)
                self.call_hook("after_val_iter")

        def train_loop(self) -> None:
            """
            The training loop for the model.
            """
            loop_range = range(self.start_steps, self.cfg.max_steps+1)
            self.global_step = self.start_steps
            self.call_hook("before_train")
            for iteration in loop_range:
                self.call_hook("before_train_iter")
                batch = self.datapipeline.next_train(self.global_step)
                self.renderer.update_sh_degree(iteration)
                self.schedulers.step(self.global_step, self.optimizer)
                self.train_step(batch)
                self.optimizer.update_model(**self.optimizer_dict)
                self.call_hook("after_train_iter")
                self.global_step += 1
                if iteration % self.cfg.val_interval == 0 or iteration == self.cfg.max_steps:
                    self.call_hook("before_val")
                    self.validation()
                    self.call_hook("after_val")
            self.call_hook("after_train")

        def call_hook(self, fn_name: str, **kwargs) -> None:
            """
            Call the hook method.

            Parameters
            ----------
            fn_name : str
                The hook method name.
            kwargs : dict
                The keyword arguments.
            """
            for hook in self.hooks:
                # support adding additional custom hook methods
                if hasattr(hook, fn_name):
                    try:
                        getattr(hook, fn_name)(self, **kwargs)
                    except TypeError as e:
                        raise TypeError(f'{e} in {hook}') from None
'''


@dataclass
class Config:
    max_steps: int = 4
    val_interval: int = 2
    hooks: dict = field(default_factory=dict)


class Anything:
    """A renderer, scheduler or optimizer that does nothing."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: {}


class Model:
    """Renders nothing."""

    def __call__(self, batch):
        return {}

    def get_metric_dict(self, results, batch):
        return {}


def run_the_documents_trainer(hooks, max_steps, val_interval):
    """Run the loop of the document with parts that do nothing."""
    names = {
        "torch": torch,
        "Path": Path,
        "Config": Config,
        "parse_structured": lambda kind, cfg: cfg,
        "parse_hooks": lambda cfg: list(cfg.values()),
    }
    exec(textwrap.dedent(TRAINER), names)

    class Filled(names["DefaultTrainer"]):
        renderer = schedulers = optimizer = Anything()
        optimizer_dict = {}  # noqa: RUF012 - as the real one
        datapipeline = SimpleNamespace(
            validation_dataset=[0], next_val=lambda i: i, next_train=lambda step: step
        )

        def train_step(self, batch):
            self.loss_dict = {"loss": torch.tensor(1.0)}

    Filled.Config = Config
    Filled.model = Model()
    Filled(Config(max_steps, val_interval, dict(enumerate(hooks))), Path()).train_loop()


@pytest.mark.parametrize(("steps", "interval"), [(4, 2), (5, 2), (3, 1), (3, 5), (6, 3)])
def test_hooks_see_the_methods_and_steps_of_the_documents_trainer(steps, interval, tmp_path):
    theirs, ours = tracing(), tracing()
    run_the_documents_trainer([theirs], steps, interval)
    train(tmp_path, ours, max_iters=steps, val_every=interval, val_data=make_data(4))
    assert ours.calls == theirs.calls


LOG_HOOK = '''
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
'''


def test_the_documents_log_hook_writes_through_the_trainers_writer(tmp_path, monkeypatch):
    monkeypatch.setattr(HOOK_REGISTRY, "_registered", {})  # Other tests shall not find it.
    names = {}
    with dialects.alias("pointrix"):
        exec("from pointrix.hook import HOOK_REGISTRY, Hook\n" + textwrap.dedent(LOG_HOOK), names)
    (hook,) = parse_hooks({"log": {"name": "LogHook"}})
    assert type(hook) is names["LogHook"]
    writer = Kept()
    train_cloud(tmp_path, Give(writer), hook, max_iters=2)
    assert [(name, step) for name, _, step in writer.scalars] == [
        ("num_pt", 1), ("pos_lr", 1), ("loss", 1), ("num_pt", 2), ("pos_lr", 2), ("loss", 2),
    ]  # fmt: skip
    losses = [value for name, value, _ in writer.scalars if name == "loss"]
    smooth = 0.4 * losses[1] + 0.6 * 0.4 * losses[0]
    assert hook.bar_info == {"loss": f"{smooth:.7f}"}
