"""What MMEngine does in many small trainings, as plain data.

The same file runs on the real MMEngine (``scripts/record_mmengine.py``, in an environment that has
it) and on hookloop's dialect (``tests/integration/test_mmengine.py``, through import aliases), so
that what both do can be compared. It imports nothing of hookloop.
"""

import itertools
import json
import logging
import os
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

_numbers = itertools.count()


def make_loader(samples=4, batch_size=2):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(samples, 2, generator=generator)
    targets = inputs.sum(1, keepdim=True)
    return DataLoader(TensorDataset(inputs, targets), batch_size=batch_size)


def make_model(init=0):
    from mmengine.model import BaseModel

    class Net(BaseModel):
        def __init__(self):
            super().__init__()
            torch.manual_seed(init)
            self.linear = torch.nn.Linear(2, 1)

        def forward(self, inputs, targets, mode="tensor"):
            output = self.linear(inputs)
            if mode == "loss":
                return {"loss": ((output - targets) ** 2).mean()}
            return list(output) if mode == "predict" else output

    return Net()


def make_metric(values=None, names=("acc",)):
    """A metric that yields the given values, one list per name, in the order of validations."""
    from mmengine.evaluator import BaseMetric

    class Scripted(BaseMetric):
        count = 0

        def process(self, data_batch, data_samples):
            self.results.extend(data_samples)

        def compute_metrics(self, results):
            self.count += 1
            lists = values or [[0.1 * n for n in range(1, 100)]]
            return {
                name: listed[min(self.count, len(listed)) - 1]
                for name, listed in zip(names, lists, strict=True)
            }

    return [Scripted()]


def make_runner(work_dir, hooks=(), checkpoint=None, **options):
    from mmengine.runner import Runner

    quiet = {"logger": None, "checkpoint": checkpoint}
    parts = {
        "model": make_model(),
        "work_dir": work_dir,
        "train_dataloader": make_loader(),
        "train_cfg": {"by_epoch": True, "max_epochs": 2},
        "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1}},
        "val_dataloader": make_loader(),
        "val_cfg": {},
        "val_evaluator": make_metric(),
        "default_hooks": quiet,
        "custom_hooks": list(hooks),
        "log_level": "ERROR",
        "randomness": {"seed": 0},
        # Hub, log and visualizer are found by this name; two runs of a second would share them.
        "experiment_name": f"scenario_{next(_numbers)}",
    }
    return Runner(**(parts | options))


def without_validation(**options):
    return {"val_dataloader": None, "val_cfg": None, "val_evaluator": None, **options}


def make_observer(priority="LOWEST", note=None):
    from mmengine.hooks import Hook

    def recorder(stage):
        def method(self, runner, **arguments):
            seen = {
                name: value if isinstance(value, int) else sorted_kind(value)
                for name, value in arguments.items()
            }
            row = [stage, runner.epoch, runner.iter, seen]
            self.rows.append(row if note is None else [*row, note(runner)])

        return method

    methods = {stage: recorder(stage) for stage in Hook.stages}
    observer = type("Observer", (Hook,), methods)()
    observer.priority = priority
    observer.rows = []
    return observer


def sorted_kind(value):
    """Describe an argument, as far as both systems have to agree."""
    if isinstance(value, dict):
        return sorted(key for key in value if key in ("loss", "acc", "state_dict", "optimizer"))
    return type(value).__name__


def files_of(work_dir):
    names = sorted(name for name in os.listdir(work_dir) if name.endswith(".pth"))
    last = os.path.join(work_dir, "last_checkpoint")
    if not os.path.isfile(last):
        return {"files": names, "last": None}
    with open(last) as file:
        return {"files": names, "last": os.path.basename(file.read().strip())}


# --- events ---------------------------------------------------------------------------------------


def events_by_epoch():
    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer()
        make_runner(work_dir, [observer]).train()
        return observer.rows


def events_by_iter():
    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer()
        cfg = {"by_epoch": False, "max_iters": 4, "val_interval": 2}
        make_runner(work_dir, [observer], train_cfg=cfg).train()
        return observer.rows


def events_of_test_and_val():
    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer()
        test = {
            "test_dataloader": make_loader(),
            "test_cfg": {},
            "test_evaluator": make_metric(),
        }
        runner = make_runner(work_dir, [observer], **test)
        metrics = [runner.val(), runner.test()]
        return [observer.rows, metrics]


def events_with_saving():
    """What is seen when checkpoints are saved; where among the events is a deviation."""
    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer()
        make_runner(work_dir, [observer], {"type": "CheckpointHook", "interval": 1}).train()
        return [row for row in observer.rows if row[0] == "before_save_checkpoint"]


def events_with_stop(where, by_epoch=True):
    from mmengine.hooks import Hook

    def stop(self, runner, **_):
        if runner.iter >= 2:
            runner.train_loop.stop_training = True

    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer()
        stopping = type("Stopping", (Hook,), {where: stop})()
        cfg = {"by_epoch": True, "max_epochs": 4}
        if not by_epoch:
            cfg = {"by_epoch": False, "max_iters": 8, "val_interval": 4}
        make_runner(work_dir, [observer, stopping], train_cfg=cfg).train()
        return [row[:3] for row in observer.rows]


def generic_methods():
    from mmengine.hooks import Hook

    rows = []

    class Generic(Hook):
        def _before_epoch(self, runner, mode="train"):
            rows.append(["before_epoch", mode])

        def _after_epoch(self, runner, mode="train"):
            rows.append(["after_epoch", mode])

        def _before_iter(self, runner, batch_idx, data_batch=None, mode="train"):
            rows.append(["before_iter", mode, batch_idx])

        def _after_iter(self, runner, batch_idx, data_batch=None, outputs=None, mode="train"):
            rows.append(["after_iter", mode, batch_idx])

        def before_val_epoch(self, runner):
            rows.append(["own", "val"])

    with tempfile.TemporaryDirectory() as work_dir:
        make_runner(work_dir, [Generic()]).train()
    return [rows, sorted(Generic().get_triggered_stages())]


def helpers():
    from mmengine.hooks import Hook

    rows = []

    class Asking(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            rows.append(
                [
                    self.every_n_train_iters(runner, 2),
                    self.every_n_train_iters(runner, 2, 1),
                    self.every_n_train_iters(runner, 0),
                    self.every_n_inner_iters(batch_idx, 2),
                    self.end_of_epoch(runner.train_dataloader, batch_idx),
                    self.is_last_train_iter(runner),
                ]
            )

        def after_train_epoch(self, runner):
            rows.append(
                [
                    self.every_n_epochs(runner, 2),
                    self.every_n_epochs(runner, 2, 3),
                    self.is_last_train_epoch(runner),
                ]
            )

    with tempfile.TemporaryDirectory() as work_dir:
        cfg = {"by_epoch": True, "max_epochs": 5}
        make_runner(work_dir, [Asking()], train_cfg=cfg).train()
    return rows


def order_of_hooks():
    from mmengine.hooks import Hook

    rows = []

    def make(name, priority):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            rows.append(name)

        hook = type(name, (Hook,), {"after_train_iter": after_train_iter})()
        hook.priority = priority
        return hook

    class Registering(Hook):
        done = False

        def before_train(self, runner):
            if self.done:  # The real one comes past here again: its list has grown in front.
                return
            self.done = True
            runner.register_hook(make("late", "HIGH"))
            runner.register_hook(make("argument", "LOWEST"), priority="VERY_HIGH")

    given = [("a", "NORMAL"), ("b", 10), ("c", "lowest"), ("d", "NORMAL"), ("e", 49)]
    with tempfile.TemporaryDirectory() as work_dir:
        hooks = [*(make(*one) for one in given), Registering()]
        cfg = {"by_epoch": False, "max_iters": 1}
        make_runner(work_dir, hooks, **without_validation(train_cfg=cfg)).train()
    return rows


def validations(max_epochs, **cfg):
    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer()
        cfg = {"by_epoch": True, "max_epochs": max_epochs, **cfg}
        make_runner(work_dir, [observer], train_cfg=cfg).train()
        return [row[1] for row in observer.rows if row[0] == "before_val"]


def validations_by_iter(max_iters, **cfg):
    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer()
        cfg = {"by_epoch": False, "max_iters": max_iters, **cfg}
        make_runner(work_dir, [observer], train_cfg=cfg).train()
        return [row[2] for row in observer.rows if row[0] == "before_val"]


# --- checkpoints ----------------------------------------------------------------------------------


def checkpoints(epochs=None, iters=None, metrics=None, names=("acc",), cfg=None, **settings):
    """Which files a training leaves."""
    length = {"by_epoch": True, "max_epochs": epochs}
    if iters is not None:
        length = {"by_epoch": False, "max_iters": iters}
    options = {"train_cfg": {**length, **(cfg or {})}}
    if metrics is None:
        options |= without_validation()
    else:
        options["val_evaluator"] = make_metric(metrics, names)
    with tempfile.TemporaryDirectory() as work_dir:
        loader = make_loader(samples=2) if epochs is not None else make_loader()
        checkpoint = {"type": "CheckpointHook", **settings}
        make_runner(work_dir, (), checkpoint, train_dataloader=loader, **options).train()
        return files_of(work_dir)


ACC = [[0.1, 0.5, 0.3, 0.5, 0.6, 0.2]]
BOTH = [*ACC, [1 - value for value in ACC[0]]]
GRID = [
    {"epochs": 10, "interval": 1},
    {"epochs": 10, "interval": -1},
    {"epochs": 10, "interval": 0},
    {"epochs": 10, "interval": -1, "save_last": False},
    {"epochs": 20, "interval": 5, "max_keep_ckpts": 2},
    {"epochs": 18, "interval": 5, "max_keep_ckpts": 2},
    {"epochs": 18, "interval": 5, "max_keep_ckpts": 2, "save_last": False},
    {"epochs": 10, "interval": 1, "save_begin": 5},
    {"epochs": 10, "interval": 2, "save_begin": 5},
    {"epochs": 10, "interval": 2, "save_begin": 5, "save_last": False},
    {"epochs": 10, "interval": 3, "save_begin": 5},
    {"epochs": 10, "interval": 1, "save_begin": 20},
    {"epochs": 10, "interval": 1, "save_begin": 20, "save_last": False},
    {"epochs": 10, "interval": 4, "save_begin": 10, "save_last": False},
    {"iters": 10, "by_epoch": False, "interval": 3},
    {"iters": 10, "by_epoch": False, "interval": 3, "save_last": False},
    {"iters": 10, "by_epoch": False, "interval": 3, "save_begin": 4},
    {"iters": 10, "by_epoch": False, "interval": 3, "max_keep_ckpts": 1},
    {"iters": 10, "by_epoch": True, "interval": 1},
    {"epochs": 12, "by_epoch": False, "interval": 5},
    {"epochs": 3, "interval": 1, "filename_tmpl": "ck.pth"},
    {"epochs": 3, "interval": 1, "filename_tmpl": "ck_{}.pth"},
    {"epochs": 6, "metrics": ACC, "save_best": "auto", "interval": 1},
    {"epochs": 6, "metrics": ACC, "save_best": "auto"},
    {"epochs": 6, "metrics": ACC, "save_best": "auto", "save_last": False},
    {"epochs": 6, "metrics": ACC, "save_best": "auto", "interval": 3},
    {"epochs": 6, "metrics": ACC, "save_best": "auto", "interval": 3, "save_last": False},
    {"epochs": 6, "metrics": ACC, "save_best": "auto", "interval": 2, "max_keep_ckpts": 1},
    {"epochs": 6, "metrics": ACC, "save_best": "auto", "interval": 2, "max_keep_ckpts": 2},
    {"epochs": 6, "metrics": BOTH, "names": ("acc", "loss"), "save_best": "loss"},
    {"epochs": 6, "metrics": ACC, "save_best": "acc", "rule": "less"},
    {"epochs": 6, "metrics": BOTH, "names": ("acc", "loss"), "save_best": ["acc", "loss"]},
    {
        "epochs": 6,
        "metrics": BOTH,
        "names": ("acc", "loss"),
        "save_best": ["acc", "loss"],
        "rule": "greater",
    },
    {"epochs": 2, "metrics": ACC, "names": ("x/acc",), "save_best": "auto"},
    {"epochs": 3, "metrics": [[float("nan"), 0.1, float("nan")]], "save_best": "acc"},
    {"epochs": 3, "metrics": [[0.3, None, 0.4]], "save_best": "acc"},
    {"epochs": 3, "metrics": [[0.3, 0.3, 0.3]], "save_best": "acc"},
    {"epochs": 6, "metrics": ACC, "save_best": "acc", "cfg": {"val_interval": 3, "val_begin": 2}},
    {
        "iters": 8,
        "metrics": ACC,
        "save_best": "acc",
        "by_epoch": False,
        "interval": 3,
        "cfg": {"val_interval": 2},
    },
    {"iters": 8, "metrics": ACC, "save_best": "acc", "cfg": {"val_interval": 4}},
    {"epochs": 3, "metrics": ACC, "names": ("val_loss_top",), "save_best": "val_loss_top"},
]


def checkpoint_grid():
    return [checkpoints(**settings) for settings in GRID]


def checkpoint_contents():
    with tempfile.TemporaryDirectory() as work_dir:
        settings = {"type": "CheckpointHook", "interval": 1}
        scheduler = {"type": "MultiStepLR", "milestones": [1]}
        make_runner(work_dir, (), settings, param_scheduler=scheduler).train()
        loaded = torch.load(os.path.join(work_dir, "epoch_2.pth"), weights_only=False)
        weights = {key: value.tolist() for key, value in loaded["state_dict"].items()}
        wanted = ("meta", "state_dict", "message_hub", "optimizer", "param_schedulers")
        meta = {key: loaded["meta"][key] for key in ("epoch", "iter", "seed")}
        return [weights, [key in loaded for key in wanted], meta]


def keep_checkpoint(path):
    """Leave a checkpoint, with momentum, a schedule and a log behind it, in a file."""
    with tempfile.TemporaryDirectory() as work_dir:
        options = {
            "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}},
            "param_scheduler": {"type": "MultiStepLR", "milestones": [1]},
        }
        make_runner(work_dir, (), {"type": "CheckpointHook", "interval": 1}, **options).train()
        with open(os.path.join(work_dir, "epoch_2.pth"), "rb") as file:
            path.write_bytes(file.read())


def resumed_from(path):
    """Continue from a checkpoint for two epochs; return what was seen and where it ended."""
    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer()
        options = {
            "train_cfg": {"by_epoch": True, "max_epochs": 4},
            "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}},
            "param_scheduler": {"type": "MultiStepLR", "milestones": [1], "end": 4},
            "load_from": str(path),
            "resume": True,
        }
        runner = make_runner(work_dir, [observer], **options)
        runner.train()
        weights = {name: value.tolist() for name, value in runner.model.state_dict().items()}
        lr = runner.optim_wrapper.get_lr()
        return [[row[:3] for row in observer.rows], weights, lr]


# --- numbers --------------------------------------------------------------------------------------


def weights_after(**options):
    with tempfile.TemporaryDirectory() as work_dir:
        runner = make_runner(work_dir, **without_validation(**options))
        runner.train()
        return {name: value.tolist() for name, value in runner.model.state_dict().items()}


def trainings():
    sgd = {"type": "SGD", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}
    rules = {"custom_keys": {"weight": {"lr_mult": 0.5}}, "bias_decay_mult": 0.0}
    five = {"train_dataloader": make_loader(samples=10)}
    one = {"train_cfg": {"by_epoch": True, "max_epochs": 1}, **five}
    return [
        weights_after(optim_wrapper={"optimizer": sgd}),
        weights_after(optim_wrapper={"optimizer": sgd, "accumulative_counts": 2}, **one),
        weights_after(optim_wrapper={"optimizer": sgd, "clip_grad": {"max_norm": 0.1}}),
        weights_after(
            optim_wrapper={"optimizer": sgd, "clip_grad": {"type": "value", "clip_value": 0.1}}
        ),
        weights_after(optim_wrapper={"optimizer": sgd, "paramwise_cfg": rules}),
        weights_after(optim_wrapper={"optimizer": {"type": "AdamW", "lr": 0.01}}),
        weights_after(
            train_cfg={"by_epoch": False, "max_iters": 5}, optim_wrapper={"optimizer": sgd}
        ),
        weights_after(
            train_dataloader={
                "dataset": make_loader(samples=10).dataset,
                "batch_size": 3,
                "sampler": {"type": "DefaultSampler", "shuffle": True},
                "collate_fn": {"type": "default_collate"},
            }
        ),
    ]


def steps_with_accumulation():
    with tempfile.TemporaryDirectory() as work_dir:
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        counted = []
        optimizer.register_step_post_hook(lambda *_: counted.append(1))
        wrapper = {"type": "OptimWrapper", "optimizer": optimizer, "accumulative_counts": 2}
        options = {
            "model": model,
            "train_cfg": {"by_epoch": False, "max_iters": 5},
            "optim_wrapper": wrapper,
        }
        make_runner(work_dir, **without_validation(**options)).train()
        return len(counted)


SCHEDULES = [
    {"type": "ConstantLR", "factor": 0.5, "end": 3},
    {"type": "ExponentialLR", "gamma": 0.5},
    {"type": "StepLR", "step_size": 2, "gamma": 0.5},
    {"type": "MultiStepLR", "milestones": [1, 3, 3], "gamma": 0.5},
    {"type": "LinearLR", "start_factor": 0.1, "begin": 0, "end": 4},
    {"type": "CosineAnnealingLR", "T_max": 4, "eta_min": 0.01},
    {"type": "CosineAnnealingLR", "eta_min_ratio": 0.1, "begin": 1, "end": 5},
    {"type": "PolyLR", "power": 2, "eta_min": 0.01, "end": 5},
    {
        "type": "CosineRestartLR",
        "periods": [2, 6],
        "restart_weights": [1, 0.5],
        "eta_min": 0.01,
    },
    {"type": "OneCycleLR", "eta_max": 1.0, "total_steps": 12},
    {"type": "OneCycleLR", "eta_max": 1.0, "total_steps": 12, "three_phase": True},
    [
        {"type": "LinearLR", "start_factor": 0.1, "by_epoch": False, "begin": 0, "end": 4},
        {"type": "MultiStepLR", "milestones": [2, 4], "gamma": 0.1},
    ],
    {"type": "CosineAnnealingLR", "T_max": 5, "convert_to_iter_based": True},
    {"type": "MultiStepLR", "milestones": [1, 3], "convert_to_iter_based": True},
    {"type": "StepMomentum", "step_size": 1, "gamma": 0.5},
]


def learning_rates():
    """The learning rate, and momentum, at each point, before and after the schedulers' hook."""

    def note(runner):
        group = runner.optim_wrapper.optimizer.param_groups[0]
        return [group["lr"], group["momentum"]]

    results = []
    for schedule in SCHEDULES:
        with tempfile.TemporaryDirectory() as work_dir:
            before, after = make_observer("NORMAL", note), make_observer("LOWEST", note)
            options = {
                "train_cfg": {"by_epoch": True, "max_epochs": 5},
                "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}},
                "param_scheduler": schedule,
            }
            make_runner(work_dir, [before, after], **without_validation(**options)).train()
            results.append([[row[0], row[4]] for one in (before, after) for row in one.rows])
    return results


def rates_on_plateau():
    def note(runner):
        return runner.optim_wrapper.optimizer.param_groups[0]["lr"]

    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer(note=note)
        options = {
            "train_cfg": {"by_epoch": True, "max_epochs": 8},
            "param_scheduler": {"type": "ReduceOnPlateauLR", "monitor": "loss", "patience": 1},
            "val_evaluator": make_metric([[1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]], ("loss",)),
        }
        make_runner(work_dir, [observer], **options).train()
        return [row[4] for row in observer.rows if row[0] == "after_val"]


def averages():
    """What a validation sees of averaged weights, when the raw ones are 1, 2, 3, ..."""
    from mmengine.hooks import Hook

    class Counting(Hook):
        priority = "VERY_HIGH"

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            for parameter in runner.model.parameters():
                parameter.data.fill_(runner.iter + 1)

    settings = [
        {"momentum": 0.1},
        {"momentum": 0.1, "interval": 2},
        {"ema_type": "StochasticWeightAverage"},
        {"ema_type": "StochasticWeightAverage", "interval": 2},
        {"ema_type": "MomentumAnnealingEMA", "momentum": 0.1, "gamma": 2},
        {"momentum": 0.1, "begin_iter": 3},
        {"momentum": 0.1, "begin_epoch": 3},
    ]
    results = []
    for setting in settings:
        with tempfile.TemporaryDirectory() as work_dir:
            seen = make_observer(
                note=lambda runner: float(next(runner.model.parameters()).detach().mean())
            )
            cfg = {"by_epoch": True, "max_epochs": 5}
            options = {"train_cfg": cfg, "train_dataloader": make_loader(samples=2)}
            hooks = [Counting(), {"type": "EMAHook", **setting}, seen]
            make_runner(work_dir, hooks, **options).train()
            results.append(
                [[r[0], r[4]] for r in seen.rows if r[0] in ("before_val_iter", "after_val")]
            )
    return results


def average_in_file():
    with tempfile.TemporaryDirectory() as work_dir:
        hooks = [{"type": "EMAHook", "momentum": 0.1}]
        make_runner(work_dir, hooks, {"type": "CheckpointHook", "interval": 1}).train()
        loaded = torch.load(os.path.join(work_dir, "epoch_2.pth"), weights_only=False)
        raw = {k: v.tolist() for k, v in loaded["ema_state_dict"].items() if "linear" in k}
        return [{k: v.tolist() for k, v in loaded["state_dict"].items()}, raw]


def early_stops():
    def stop(values, **settings):
        with tempfile.TemporaryDirectory() as work_dir:
            hooks = [{"type": "EarlyStoppingHook", "monitor": "acc", **settings}]
            options = {
                "train_cfg": {"by_epoch": True, "max_epochs": 12},
                "val_evaluator": make_metric([values]),
            }
            runner = make_runner(work_dir, hooks, **options)
            runner.train()
            return runner.epoch

    rising = [0.1, 0.2, 0.3, 0.4, 0.5]
    return [
        stop([0.1]),
        stop([0.1], patience=2),
        stop([0.1], min_delta=0),
        stop(rising, patience=1),
        stop(rising, patience=2, min_delta=0.05),
        stop(rising, stopping_threshold=0.3, min_delta=0.05),
        stop([0.1, 0.2, float("nan")], min_delta=0.01),
        stop([0.1, 0.2, float("inf")], min_delta=0.01),
        stop([0.5, 0.4, 0.3, 0.2, 0.2], rule="less", patience=2, min_delta=0.05),
        stop([0.1, float("nan"), 0.3], check_finite=False, patience=3),
    ]


# --- the log --------------------------------------------------------------------------------------


def logged(samples, **settings):
    """The lines of scalars.json: step and names; times differ from run to run."""
    with tempfile.TemporaryDirectory() as work_dir:
        hooks = {"logger": {"type": "LoggerHook", **settings}, "checkpoint": None}
        options = {"train_dataloader": make_loader(samples=samples), "default_hooks": hooks}
        runner = make_runner(work_dir, **options)
        runner.train()
        path = os.path.join(runner.log_dir, "vis_data", "scalars.json")
        with open(path) as file:
            lines = [json.loads(line) for line in file]
        exact = ("lr", "loss", "acc", "epoch", "iter", "step", "memory")
        return [
            {key: value if key in exact else "time" for key, value in line.items()}
            for line in lines
        ]


def logs():
    return [
        logged(10, interval=2),
        logged(10, interval=2, ignore_last=False),
        logged(10, interval=20),
        logged(10, interval=2, log_metric_by_epoch=False),
    ]


def log_lines():
    """The text of the log without numbers that depend on the time."""
    import re

    from mmengine.logging import MMLogger

    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    with tempfile.TemporaryDirectory() as work_dir:
        hooks = {"logger": {"type": "LoggerHook", "interval": 2}, "checkpoint": None}
        test = {"test_dataloader": make_loader(), "test_cfg": {}, "test_evaluator": make_metric()}
        loader = make_loader(samples=20)
        options = {"default_hooks": hooks, "train_dataloader": loader, "log_level": "INFO", **test}
        runner = make_runner(work_dir, **options)
        logger = MMLogger.get_current_instance()
        for handler in logger.handlers:
            handler.close()
        logger.handlers = [Keep()]
        runner.train()
        runner.test()
    progress = [line for line in lines if line.startswith(("Epoch(", "Iter("))]
    return [re.sub(r"(time|eta): [\d.:]+", r"\1: -", line) for line in progress]


def message_hub():
    """What the hub says at some points."""

    def note(runner):
        hub = runner.message_hub
        info = {key: hub.get_info(key) for key in ("epoch", "iter", "max_epochs", "max_iters")}
        known = [key for key in ("train/loss", "train/lr", "val/acc") if key in hub.log_scalars]
        scalars = {key: hub.get_scalar(key).current() for key in known}
        return [info, hub.get_info("loop_stage"), scalars]

    with tempfile.TemporaryDirectory() as work_dir:
        observer = make_observer("NORMAL", note)
        options = {"param_scheduler": {"type": "ExponentialLR", "gamma": 0.5}}
        make_runner(work_dir, [observer], **options).train()
        points = ("before_train_iter", "after_train_iter", "before_val", "after_val_epoch")
        return [[row[0], row[4]] for row in observer.rows if row[0] in (*points, "after_train")]


def sampler_epochs():
    seen = []

    class Sampler(torch.utils.data.SequentialSampler):
        def set_epoch(self, epoch):
            seen.append(epoch)

    with tempfile.TemporaryDirectory() as work_dir:
        dataset = make_loader().dataset
        loader = DataLoader(dataset, batch_size=2, sampler=Sampler(dataset))
        cfg = {"by_epoch": True, "max_epochs": 3}
        options = without_validation(train_dataloader=loader, train_cfg=cfg)
        make_runner(work_dir, **options).train()
    return seen


SCENARIOS = {
    "events_by_epoch": events_by_epoch,
    "events_by_iter": events_by_iter,
    "events_of_test_and_val": events_of_test_and_val,
    "events_with_saving": events_with_saving,
    "events_with_stop": lambda: [
        events_with_stop("after_train_iter"),
        events_with_stop("after_train_epoch"),
        events_with_stop("after_val_epoch"),
        events_with_stop("after_train_iter", by_epoch=False),
    ],
    "generic_methods": generic_methods,
    "helpers": helpers,
    "order_of_hooks": order_of_hooks,
    "validations": lambda: [
        validations(10, val_interval=3),
        validations(10, val_interval=3, val_begin=5),
        validations(10, val_interval=20),
        validations(10, val_begin=11),
        validations(10, val_interval=5, dynamic_intervals=[(7, 1)]),
        validations_by_iter(10, val_interval=3),
        validations_by_iter(10, val_interval=3, val_begin=5),
        validations_by_iter(10),
        validations_by_iter(10, val_interval=5, dynamic_intervals=[(7, 1)]),
    ],
    "checkpoint_grid": checkpoint_grid,
    "checkpoint_contents": checkpoint_contents,
    "trainings": trainings,
    "steps_with_accumulation": steps_with_accumulation,
    "learning_rates": learning_rates,
    "rates_on_plateau": rates_on_plateau,
    "averages": averages,
    "average_in_file": average_in_file,
    "early_stops": early_stops,
    "logs": logs,
    "log_lines": log_lines,
    "message_hub": message_hub,
    "sampler_epochs": sampler_epochs,
}


def run_resumed(path):
    """Continue from the recorded checkpoint."""
    return json.loads(json.dumps(resumed_from(path)))


def run(name):
    """Run a scenario; its result is what JSON can say, NaN and infinity as text."""
    return json.loads(json.dumps(SCENARIOS[name](), default=str), parse_constant=str)
