"""Pointrix's hooks: methods, steps, the trainer, writers, and the document."""

import json
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop import dialects
from hookloop.core.hook import Hook as NativeHook
from hookloop.dialects.pointrix import HOOK_REGISTRY, Hook, Writer, parse_hooks, parse_writer
from hookloop.dialects.pointrix.hook import CheckPointHook, LogHook, LRSchedulerHook
from hookloop.dialects.pointrix.logger import TensorboardWriter
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, WriteMetrics

LOOP = [
    "before_run", "before_train", "before_train_iter", "after_train_iter", "before_val",
    "before_val_iter", "after_val_iter", "after_val", "after_train",
]  # fmt: skip


def tracing(methods=LOOP):
    def at(method):
        return lambda self, trainner: self.calls.append((method, trainner.global_step))

    kind = type("Trace", (Hook,), {method: at(method) for method in methods})
    kind.calls = []
    return kind()


def train(tmp_path, *hooks, **options):
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path / "run", **options)
    trainer.train()
    return trainer


# The document's trainer, verbatim.
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


class Model:
    """Renders nothing."""

    def __call__(self, batch):
        return {}

    def get_metric_dict(self, results, batch):
        return {}


@pytest.mark.parametrize(("steps", "interval"), [(4, 2), (5, 2), (3, 1), (3, 5), (6, 3)])
def test_hooks_see_the_methods_and_steps_of_the_documents_trainer(steps, interval, tmp_path):
    theirs, ours = tracing(), tracing()
    run_the_documents_trainer([theirs], steps, interval)
    train(tmp_path, ours, max_iters=steps, val_every=interval, val_data=make_data(4))
    assert ours.calls == theirs.calls


def test_call_hook_supports_methods_that_are_no_mount_points(tmp_path):
    class Call(Hook):
        def after_train_iter(self, trainner):
            trainner.call_hook("on_densify", count=3)

    class Listen(Hook):
        def on_densify(self, trainner, count):
            seen.append((trainner.global_step, count))

    class Wrong(Hook):
        def on_densify(self, trainner): ...

    seen = []
    train(tmp_path, Call(), Listen(), max_iters=2)
    assert seen == [(1, 3), (2, 3)]
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'count' in <.*Wrong"):
        make_trainer(hooks=[Call(), Wrong()], run_dir=tmp_path / "other").train()


def test_exception_is_called_without_arguments_when_the_run_fails(tmp_path):
    class Clean(Hook):
        def exception(self):
            seen.append("cleaned")

        def after_train(self, trainner):
            seen.append("trained")

    class Fail(NativeHook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    seen = []
    with pytest.raises(RuntimeError, match="broken"):
        train(tmp_path, Clean(), Fail())
    assert seen == ["cleaned"]


def test_the_points_that_pointrix_declares_and_never_calls_are_called(tmp_path):
    names = ["after_load_checkpoint", "before_save_checkpoint", "after_run"]
    hook = tracing(names)
    train(tmp_path, hook, SaveCheckpoint(), max_epochs=1)
    assert [call[0] for call in hook.calls] == ["before_save_checkpoint", "after_run"]
    hook = tracing(names)
    train(tmp_path, hook, SaveCheckpoint(), max_epochs=2, resume=True)
    assert hook.calls[0][0] == "after_load_checkpoint"


def test_hooks_act_in_list_order_whatever_their_priority(tmp_path):
    class Act(Hook):
        def __init__(self, label, priority):
            self.label = label
            self.priority = priority

        def before_train(self, trainner):
            order.append(self.label)

    order = []
    train(tmp_path, Act("low", "LOW"), Act("high", "HIGH"))
    assert order == ["low", "high"]


def test_the_trainer_offers_what_hooks_of_pointrix_touch(tmp_path):
    class Look(Hook):
        def after_train_iter(self, trainner):
            seen.update(
                cfg=(trainner.cfg.max_steps, trainner.cfg.save_step, trainner.cfg["val_interval"]),
                exp_dir=trainner.exp_dir,
                loss=trainner.loss_dict["loss"].ndim,
                names=[group["name"] for group in trainner.optimizer.param_groups],
                size=trainner.val_dataset_size,
                data=len(trainner.datapipeline.validation_dataset),
                gui=trainner.gui,
            )
            trainner.optimizer.param_groups[0]["lr"] = 0.125

    seen = {}
    config = {"trainer": {"val_interval": 2, "save_step": 7}}
    trainer = train(tmp_path, Look(), val_data=make_data(8), config=config)
    assert seen["cfg"] == (3, 7, 2) and seen["exp_dir"] == tmp_path / "run"
    assert (seen["loss"], seen["names"], seen["size"], seen["data"]) == (0, ["group_0"], 2, 8)
    assert trainer.run.optimizer.param_groups[0]["lr"] == 0.125


def test_an_attribute_that_is_not_offered_names_hook_attribute_and_a_way(tmp_path):
    class Ask(Hook):
        def before_train(self, trainner):
            trainner.renderer  # noqa: B018 - the question itself

    with pytest.raises(HookError, match=r"'ask' asks for trainner.renderer.*Trainer\(step="):
        train(tmp_path, Ask())


# --- the document's hook ----------------------------------------------------------------------

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


class Cloud(torch.nn.Module):
    """A model with a point cloud, as those of Pointrix have one."""

    def __init__(self):
        super().__init__()
        self.point_cloud = torch.nn.ParameterList([torch.zeros(3) for _ in range(5)])

    def save_ply(self, path): ...


class Kept(Writer):
    """A writer that keeps what it is given."""

    def __init__(self):
        super().__init__("")
        self.scalars = []
        self.images = []

    def write_scalar(self, name, scalar, step):
        self.scalars.append((name, round(float(scalar), 6), step))

    def write_image(self, name, image, step, caption=None):
        self.images.append((name, tuple(image.shape), step))

    def write_config(self, name, config_dict, step): ...


class Give(Hook):
    """Gives the trainer a writer, as Pointrix's own constructor does."""

    def __init__(self, writer):
        self.writer = writer

    def before_run(self, trainner):
        trainner.writer = self.writer


def train_cloud(tmp_path, *hooks, **options):
    model = Cloud()

    def step(run, batch):
        points = torch.stack(list(model.point_cloud))
        found = {"loss": (points - 1).square().mean(), "optimizer_params": {"grads": 1}}
        if run.phase == "val":
            found |= {"psnr": torch.tensor(float(batch)), "images": torch.zeros(3, 4, 6)}
        return found

    groups = [{"params": model.parameters(), "name": "point_cloud.position", "lr": 0.5}]
    return train(
        tmp_path,
        *hooks,
        model=model,
        train_data=[0, 1, 2, 3],
        step=step,
        optimizer=torch.optim.SGD(groups),
        **options,
    )


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


def test_our_log_hook_writes_what_pointrixs_does_and_the_means_of_a_validation(tmp_path):
    writer = Kept()
    train_cloud(tmp_path, Give(writer), LogHook(), max_iters=2, val_every=2, val_data=[10, 20])
    names = [(name, step) for name, _, step in writer.scalars]
    assert names[:3] == [("num_pt", 1), ("pos_lr", 1), ("loss", 1)]
    assert writer.scalars[-1] == ("test/loss_viewpoint - psnr", 15.0, 3)
    assert writer.images == [("test_view_val/render", (4, 6, 3), 3)] * 2


def test_log_hook_does_without_a_point_cloud(tmp_path):
    writer = Kept()
    train(tmp_path, Give(writer), LogHook(), max_iters=1)
    assert [name for name, _, _ in writer.scalars] == ["loss"]


def test_without_a_writer_of_its_own_the_run_writes(tmp_path):
    train(tmp_path, LogHook(), WriteMetrics(every=1), max_iters=2)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [line["iter"] for line in map(json.loads, lines) if "loss" in line] == [1, 2]


def test_checkpoints_have_pointrixs_names(tmp_path):
    config = {"trainer": {"save_step": 2}}
    train_cloud(tmp_path, CheckPointHook(), max_iters=4, config=config)
    names = sorted(path.name for path in (tmp_path / "run").glob("chkpnt*"))
    assert names == ["chkpnt00005.pth", "chkpnt2.pth", "chkpnt4.pth"]


def test_rates_are_set_by_the_step(tmp_path):
    class Look(NativeHook):
        def after_update(self, run):
            seen.append(run.optimizer.param_groups[0]["lr"])

    seen = []
    hook = LRSchedulerHook({"point_cloud.position": lambda step: 1 / step})
    train_cloud(tmp_path, hook, Look(), max_iters=3)
    assert seen == [1, 0.5, pytest.approx(1 / 3)]


def test_writers_are_chosen_by_their_type(tmp_path):
    writer = parse_writer({"writer_type": "TensorboardWriter"}, tmp_path)
    assert isinstance(writer, TensorboardWriter)
    writer.write_scalar("a", torch.tensor(1.0), 1)
    writer.write_image("b", torch.zeros(4, 6, 3), 1)
    writer.write_config("config", {"lr": 1}, 0)
    writer.finish()
    assert list(tmp_path.glob("events.out.tfevents*"))
    with pytest.raises(KeyError, match="Did you mean 'TensorboardWriter'"):
        parse_writer({"writer_type": "TensorbordWriter"}, tmp_path)


def test_a_writer_has_to_write():
    with pytest.raises(NotImplementedError, match="Writer has no write_scalar"):
        Writer("").write_scalar("a", 1, 1)


def test_hooks_of_a_config_may_have_arguments_and_may_be_none():
    assert parse_hooks({}) == parse_hooks(None) == []
    (hook,) = parse_hooks({"lr": {"name": "LRSchedulerHook", "schedulers": {"a": len}}})
    assert hook.schedulers == {"a": len}


def test_a_subclass_of_the_log_hook_sums_up_names_of_its_own(tmp_path):
    with dialects.alias("pointrix"):
        from pointrix.hook.log_hook import LogHook
        from pointrix.utils.visualize import visualize_depth

    class Depths(LogHook):
        def __init__(self):
            super().__init__()
            self.losses_test = {"psnr": 0.0, "abs_rel": 0.0}

    class Trainner:
        metric_dict: ClassVar = {"abs_rel": 2.0, "rgb_file_name": "a.png"}
        val_dataset_size, global_step = 1, 3
        run = SimpleNamespace(stream="")
        writer = SimpleNamespace(write_scalar=lambda *args: written.append(args))

    written: list[tuple[object, ...]] = []
    hook = Depths()
    for _ in range(2):
        hook.after_val_iter(Trainner())
        hook.after_val(Trainner())
    assert written == [("test/loss_viewpoint - abs_rel", 2.0, 3)] * 2
    near_and_far = visualize_depth(torch.tensor([[1.0, 2.0]]), tensorboard=True)
    assert near_and_far[:, 0, 0].tolist() == [0, 0, 0.5]
    assert near_and_far[:, 0, 1].tolist() == pytest.approx([0.5, 0, 0], abs=1e-5)
    assert visualize_depth(torch.tensor([[1.0, 2.0]])).shape == (1, 2, 3)
