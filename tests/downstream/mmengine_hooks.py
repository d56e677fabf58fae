"""Hooks in the style of public OpenMMLab projects, each with a training that shows its effect.

The same file runs on the real MMEngine and on hookloop's dialect, in its ``Runner`` and in a
``Trainer``; what a hook has noted, and the weights at the end, can be compared. It imports nothing
of hookloop.
"""

import copy
import itertools
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

_numbers = itertools.count()


def plain(sample):
    return sample


def bright(sample):
    return sample + 3.0


class Samples(Dataset):
    """Samples that pass through a pipeline, and classes with names."""

    metainfo = {"classes": ("cat", "dog")}  # noqa: RUF012 - MMEngine's projects write it so

    def __init__(self):
        self.values = torch.randn(8, 3, generator=torch.Generator().manual_seed(3))
        self.pipeline, self.epoch = plain, 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        value = self.pipeline(self.values[index])
        return value, value.sum()[None]

    def set_epoch(self, epoch):
        self.epoch = epoch


def make_loader(**options):
    return DataLoader(Samples(), **({"batch_size": 4} | options))


def make_model():
    from mmengine.model import BaseModel

    class Net(BaseModel):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.backbone, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
            self.head = nn.Linear(2, 1)
            self.epoch, self.extra = -1, 0.0

        def forward(self, inputs, targets=None, mode="tensor"):
            output = self.head(self.norm(self.backbone(inputs))) + self.extra
            if mode == "loss":
                return {"loss": ((output - targets) ** 2).mean()}
            return list(output) if mode == "predict" else output

        def set_epoch(self, epoch):
            self.epoch = epoch

    return Net()


def make_metric():
    from mmengine.evaluator import BaseMetric

    class Size(BaseMetric):
        def process(self, data_batch, data_samples):
            self.results.extend(float(sample.sum()) for sample in data_samples)

        def compute_metrics(self, results):
            return {"size": sum(results) / len(results)}

    return [Size()]


def make_hooks():  # noqa: C901 - one class after the other
    """Return the classes by name; made when MMEngine, or what stands for it, can be imported."""
    from mmengine.dist import get_dist_info
    from mmengine.hooks import Hook, ParamSchedulerHook
    from mmengine.logging import MessageHub
    from mmengine.model import is_model_wrapper
    from mmengine.runner import IterBasedTrainLoop

    class Noting(Hook):
        def __init__(self):
            self.notes = []

    class PipelineSwitchHook(Noting):
        has_switched = restarts = False

        def before_train_epoch(self, runner):
            loader = runner.train_dataloader
            if runner.epoch >= 1 and not self.has_switched:
                loader.dataset.pipeline = bright
                if getattr(loader, "persistent_workers", False) is True:
                    loader._DataLoader__initialized = False
                    loader._iterator = None
                    self.restarts = True
                self.has_switched = True
            elif self.restarts:
                loader._DataLoader__initialized = True

        def before_train_iter(self, runner, batch_idx, data_batch=None):
            self.notes.append(float(data_batch[0].mean()))

    class ModeSwitchHook(Noting):
        def before_train_epoch(self, runner):
            model = runner.model
            if is_model_wrapper(model):
                model = model.module
            if runner.epoch + 1 >= runner.max_epochs - 1:
                runner.train_loop.dataloader.dataset.pipeline = bright
                model.extra = 0.5
            self.notes.append(model.extra)

    class WeightAverageHook(Noting):
        def before_run(self, runner):
            self.average = copy.deepcopy(runner.model)

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            for old, new in zip(self.average.parameters(), runner.model.parameters(), strict=True):
                old.data.lerp_(new.data, 0.1)

        def _swap(self, runner):
            for old, new in zip(self.average.parameters(), runner.model.parameters(), strict=True):
                saved = old.data.clone()
                old.data.copy_(new.data)
                new.data.copy_(saved)

        def before_val_epoch(self, runner):
            self._swap(runner)

        def after_val_epoch(self, runner, metrics=None):
            self._swap(runner)
            self.notes.append(metrics["size"])

    class SyncNormHook(Noting):
        def before_val_epoch(self, runner):
            states = {
                f"{name}.{key}": value
                for name, module in runner.model.named_modules()
                if isinstance(module, nn.modules.batchnorm._BatchNorm)
                for key, value in module.state_dict().items()
            }
            _, world_size = get_dist_info()
            self.notes.append([world_size, sorted(states)])

    class MeanTeacherHook(Noting):
        def before_train(self, runner):
            self.teacher = copy.deepcopy(runner.model.head)

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if self.every_n_train_iters(runner, 2):
                for old, new in zip(
                    self.teacher.parameters(), runner.model.head.parameters(), strict=True
                ):
                    old.data.mul_(0.9).add_(new.data, alpha=0.1)
                self.notes.append([runner.iter, float(self.teacher.weight.detach().sum())])

    class MemoryProfilerHook(Noting):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if self.every_n_inner_iters(batch_idx, 2):
                self.notes.append(["train", batch_idx])

        def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.notes.append(["val", batch_idx, len(outputs), [len(b) for b in data_batch]])

    class SetEpochInfoHook(Noting):
        def before_train_epoch(self, runner):
            model = runner.model.module if is_model_wrapper(runner.model) else runner.model
            model.set_epoch(runner.epoch)
            runner.train_dataloader.dataset.set_epoch(runner.epoch)

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.notes.append([runner.model.epoch, runner.train_dataloader.dataset.epoch])

    class CheckInvalidLossHook(Noting):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if self.every_n_train_iters(runner, 3):
                assert torch.isfinite(outputs["loss"]), runner.logger.info("loss is not finite")
                self.notes.append([runner.iter, float(outputs["loss"].detach())])

    class NumClassCheckHook(Noting):
        def _check(self, runner, mode):
            dataset = getattr(runner, f"{mode}_dataloader").dataset
            assert isinstance(dataset.metainfo["classes"], tuple)
            self.notes.append([mode, len(dataset.metainfo["classes"])])

        def before_train_epoch(self, runner):
            self._check(runner, "train")

        def before_val_epoch(self, runner):
            self._check(runner, "val")

    class VisualizationHook(Noting):
        def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            for number, output in enumerate(outputs):
                step = runner.iter + batch_idx
                if self.every_n_inner_iters(batch_idx, 2):
                    runner.visualizer.add_scalar(f"val/{number}", float(output.sum()), step)
                    self.notes.append([step, float(output.sum())])

    class PreciseBNHook(Noting):
        def after_train_epoch(self, runner):
            with torch.no_grad():
                means = [runner.model.backbone(b[0]).mean(0) for b in runner.train_dataloader]
            runner.model.norm.running_mean.copy_(torch.stack(means).mean(0))
            self.notes.append(runner.model.norm.running_mean.tolist())

    class TimeHook(Noting):
        priority = "LOW"

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            hub = runner.message_hub
            names = ("train/time", "train/data_time", "train/loss", "train/lr")
            lengths = [len(hub.get_scalar(name).data[0]) for name in names]
            infos = [hub.get_info(name) for name in ("epoch", "iter", "max_epochs", "max_iters")]
            self.notes.append([lengths, infos])

        def after_val_epoch(self, runner, metrics=None):
            self.notes.append(runner.message_hub.get_scalar("val/size").current())

    class StopWhenSmallHook(Noting):
        def after_val_epoch(self, runner, metrics=None):
            self.notes.append([runner.epoch, metrics["size"]])
            if runner.epoch >= 2:
                runner.train_loop.stop_training = True

    class FreezeHook(Noting):
        def before_train_epoch(self, runner):
            if runner.epoch == 1:
                for parameter in runner.model.backbone.parameters():
                    parameter.requires_grad = False
                runner.model.norm.eval()

        def after_train_epoch(self, runner):
            self.notes.append(float(runner.model.backbone.weight.detach().sum()))

    class WarmupHook(Noting):
        def before_train_iter(self, runner, batch_idx, data_batch=None):
            done = min((runner.iter + 1) / 4, 1.0)
            for group in runner.optim_wrapper.param_groups:
                group["lr"] = 0.1 * done
            self.notes.append(runner.optim_wrapper.get_lr()["lr"][0])

    class OwnSchedulerHook(Noting):
        def after_train_epoch(self, runner):
            for scheduler in runner.param_schedulers:
                scheduler.step()
            self.notes.append(runner.optim_wrapper.param_groups[0]["lr"])

    class StepTwiceHook(ParamSchedulerHook):
        def __init__(self):
            super().__init__()
            self.notes = []

        def after_train_epoch(self, runner):
            super().after_train_epoch(runner)
            super().after_train_epoch(runner)
            self.notes.append(runner.optim_wrapper.param_groups[0]["lr"])

    class HubWriterHook(Noting):
        def before_train_iter(self, runner, batch_idx, data_batch=None):
            hub = MessageHub.get_current_instance()
            hub.update_info("loss_weight", 1.0 / (runner.iter + 1))
            hub.update_scalar("train/weight", 0.5 * runner.iter)

        def after_train_epoch(self, runner):
            hub = runner.message_hub
            self.notes.append([hub.get_info("loss_weight"), hub.get_scalar("train/weight").mean()])

    class SaveHook(Noting):
        def after_train_epoch(self, runner):
            name = f"mine_{runner.epoch + 1}.pth"
            runner.save_checkpoint(runner.work_dir, name, save_optimizer=False)

        def before_save_checkpoint(self, runner, checkpoint):
            checkpoint["mine"] = {"epoch": runner.epoch}
            self.notes.append([runner.epoch, runner.iter, "state_dict" in checkpoint])

    class AugmentHook(Noting):
        def before_train_iter(self, runner, batch_idx, data_batch=None):
            data_batch[0].mul_(2.0)

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.notes.append([float(data_batch[0].sum()), float(outputs["loss"].detach())])

    class HelpersHook(Noting):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            self.notes.append([
                batch_idx, runner.epoch, runner.iter,
                self.every_n_epochs(runner, 2), self.every_n_train_iters(runner, 3),
                self.end_of_epoch(runner.train_dataloader, batch_idx),
                self.is_last_train_epoch(runner), self.is_last_train_iter(runner),
            ])  # fmt: skip

        def after_train_epoch(self, runner):
            self.notes.append([runner.epoch, runner.iter, runner.train_loop.max_epochs])

    class RegisteringHook(Noting):
        def before_train(self, runner):
            inner = MemoryProfilerHook()
            inner.notes = self.notes
            runner.register_hook(inner, priority="LOW")

    class EvaluatorHook(Noting):
        def before_val_epoch(self, runner):
            evaluator = runner.val_evaluator
            self.notes.append([len(evaluator.metrics), runner.val_loop.evaluator is evaluator])

    class LoadHook(Noting):
        def before_train(self, runner):
            state = {key: torch.zeros_like(v) for key, v in runner.model.state_dict().items()}
            with tempfile.TemporaryDirectory() as directory:
                torch.save({"state_dict": state}, f"{directory}/zeros.pth")
                runner.load_checkpoint(f"{directory}/zeros.pth", map_location="cpu", strict=True)
            self.notes.append(float(runner.model.backbone.weight.detach().abs().sum()))

    class OtherDataHook(Noting):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if runner.iter == 1 and isinstance(runner.train_loop, IterBasedTrainLoop):
                loader = make_loader()
                loader.dataset.pipeline = bright
                kind = type(runner.train_loop.dataloader_iterator)
                runner.train_loop.dataloader_iterator = kind(loader)

        def before_train_iter(self, runner, batch_idx, data_batch=None):
            self.notes.append([batch_idx, float(data_batch[0].mean())])

    return {kind.__name__: kind for kind in locals().values() if isinstance(kind, type)}


PERSISTENT = {"num_workers": 1, "persistent_workers": True}
HALVE = {"param_scheduler": {"type": "ExponentialLR", "gamma": 0.5, "end": 10}}
# Name of the hook, with the options of its training that differ from the others'.
HOOKS = {
    "PipelineSwitchHook": {"loader": PERSISTENT},
    "ModeSwitchHook": {},
    "WeightAverageHook": {},
    "SyncNormHook": {},
    "MeanTeacherHook": {},
    "MemoryProfilerHook": {},
    "SetEpochInfoHook": {},
    "CheckInvalidLossHook": {},
    "NumClassCheckHook": {},
    "VisualizationHook": {},
    "PreciseBNHook": {},
    "TimeHook": {},
    "StopWhenSmallHook": {},
    "FreezeHook": {},
    "WarmupHook": {},
    "OwnSchedulerHook": {"steps": False, **HALVE},
    "StepTwiceHook": {"steps": False, **HALVE},
    "HubWriterHook": {},
    "SaveHook": {},
    "AugmentHook": {},
    "HelpersHook": {},
    "RegisteringHook": {},
    "EvaluatorHook": {},
    "LoadHook": {},
    "OtherDataHook": {"iters": 6},
}


def result_of(hook, model):
    weights = [round(float(value.double().sum()), 6) for value in model.state_dict().values()]
    return {"notes": hook.notes, "weights": weights}


def run_in_runner(name):
    """Train with MMEngine's runner; return what the hook noted and the sums of the weights."""
    from mmengine.runner import Runner

    options = dict(HOOKS[name])
    hook = make_hooks()[name]()
    limits = {"by_epoch": True, "max_epochs": 3, "val_interval": 1}
    if "iters" in options:
        limits = {"by_epoch": False, "max_iters": options["iters"], "val_interval": 3}
    default_hooks = {"logger": None, "checkpoint": None}
    if not options.get("steps", True):
        default_hooks["param_scheduler"] = None
    with tempfile.TemporaryDirectory() as work_dir:
        runner = Runner(
            make_model(),
            work_dir,
            train_dataloader=make_loader(**options.get("loader", {})),
            train_cfg=limits,
            val_dataloader=make_loader(),
            val_cfg={},
            val_evaluator=make_metric(),
            optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}},
            param_scheduler=options.get("param_scheduler"),
            default_hooks=default_hooks,
            custom_hooks=[hook],
            log_level="ERROR",
            randomness={"seed": 0},
            experiment_name=f"hook_{next(_numbers)}",
        )
        runner.train()
        return result_of(hook, runner.model)


def run_all():
    """Return the results of all hooks in the runner, by name."""
    return {name: run_in_runner(name) for name in HOOKS}
