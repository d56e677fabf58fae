"""iMIX's hooks: stages, counters, levels, the engine, and the document."""

import json
import logging
import textwrap

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop import dialects
from hookloop.core.hook import Hook
from hookloop.dialects.imix import (
    HOOKS,
    HistoryBuffer,
    HookBase,
    PriorityStatus,
    build_hook,
    build_hooks,
    engine,
    get_log_buffer,
)
from hookloop.errors import HookError

STAGES = [
    "before_train", "before_train_epoch", "before_train_iter", "after_train_iter",
    "after_train_epoch", "after_train",
]  # fmt: skip


def tracing(note=lambda trainer: (trainer.iter, trainer.inner_iter, trainer.epoch)):
    def at(stage):
        return lambda self: self.calls.append((stage, *note(self.trainer)))

    kind = type("Trace", (HookBase,), {stage: at(stage) for stage in STAGES})
    kind.calls = []
    return kind()


def train(tmp_path, *hooks, **options):
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path / "run", **options)
    trainer.train()
    return trainer


def test_stages_and_counters_by_epoch(tmp_path):
    hook = tracing()
    train(tmp_path, hook, train_data=make_data(8), val_data=make_data(4), max_epochs=2)
    assert hook.calls == [
        ("before_train", 0, 0, 0),
        ("before_train_epoch", 0, 0, 0),
        ("before_train_iter", 0, 0, 0),
        ("after_train_iter", 0, 0, 0),
        ("before_train_iter", 1, 1, 0),
        ("after_train_iter", 1, 1, 0),
        ("after_train_epoch", 2, 2, 0),
        ("before_train_epoch", 2, 0, 1),
        ("before_train_iter", 2, 0, 1),
        ("after_train_iter", 2, 0, 1),
        ("before_train_iter", 3, 1, 1),
        ("after_train_iter", 3, 1, 1),
        ("after_train_epoch", 4, 2, 1),
        ("after_train", 4, 2, 1),
    ]


def test_by_iteration_no_stage_of_an_epoch_is_called(tmp_path):
    hook = tracing(lambda trainer: (trainer.iter, trainer.max_iter, trainer.by_epoch))
    train(tmp_path, hook, max_iters=4)
    assert [call[0] for call in hook.calls] == [
        "before_train", *["before_train_iter", "after_train_iter"] * 4, "after_train",
    ]  # fmt: skip
    assert hook.calls[-2] == ("after_train_iter", 3, 4, False)


def test_after_train_comes_after_a_failure_too(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    hook = tracing(lambda trainer: ())
    trainer = make_trainer(hooks=[hook, Fail()], run_dir=tmp_path / "run")
    with pytest.raises(RuntimeError, match="broken"):
        trainer.train()
    assert hook.calls[-1] == ("after_train",)


@pytest.mark.parametrize(
    ("level", "status"),
    [
        (PriorityStatus.LOW, "LOW"), (40, "LOW"), (30, "NORMAL"), ("HIGH", "HIGH"), ("low", "LOW"),
        (35, "NORMAL"), (-1, "NORMAL"), (True, "NORMAL"), ("soon", "NORMAL"), (0, "HIGHEST"),
    ],
)  # fmt: skip
def test_levels_are_read(level, status, caplog):
    hook = HookBase()
    hook.level = level
    assert hook.level.name == status
    known = status != "NORMAL" or level == 30
    assert bool(caplog.messages) == (not known)


def test_levels_are_translated_by_name(tmp_path):
    class Act(HookBase):
        def __init__(self, label, level):
            self.label = label
            self.level = level

        def before_train(self):
            order.append(self.label)

    class Native(Hook):
        def before_train(self, run):
            order.append(f"native {self.priority}")

    order = []
    foreign = [Act(level.name, level) for level in reversed(PriorityStatus)]
    natives = [_with(Native(), priority) for priority in ("HIGH", "NORMAL", "LOW", "VERY_LOW")]
    train(tmp_path, *foreign, *natives)
    assert order == [
        "HIGHEST", "HIGHER", "HIGH", "native HIGH", "NORMAL", "native NORMAL", "LOW",
        "native LOW", "LOWER", "native VERY_LOW", "LOWEST",
    ]  # fmt: skip


def _with(hook, priority):
    hook.priority = priority
    return hook.named(f"native_{priority.lower()}")


def test_hooks_above_high_act_before_backward_and_can_change_the_loss(tmp_path):
    class Halve(HookBase):
        _level = PriorityStatus.HIGHER

        def after_train_iter(self):
            self.trainer.output["loss"] /= 2

    halved = train(tmp_path, Halve(), max_iters=1).run.model
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs, targets = next(iter(make_data()))
    (torch.nn.functional.mse_loss(model(inputs), targets) / 2).backward()
    optimizer.step()
    for one, other in zip(halved.parameters(), model.parameters(), strict=True):
        assert torch.allclose(one, other)


def test_hooks_at_other_levels_see_updated_parameters(tmp_path):
    class Look(HookBase):
        def before_train(self):
            self.before = self.trainer.model[0].weight.clone()

        def after_train_iter(self):
            changed.append(not torch.equal(self.before, self.trainer.model[0].weight))

    changed = []
    train(tmp_path, Look(), max_iters=1)
    assert changed == [True]


def test_a_hook_that_makes_the_update_itself_is_refused(tmp_path):
    class MyOptimizerHook(HookBase):
        def before_train_iter(self):
            self.trainer.optimizer.zero_grad()

    with pytest.raises(HookError, match=r"'my_optimizer_hook' calls trainer.optimizer.zero_grad"):
        train(tmp_path, MyOptimizerHook())

    class Mine(engine.hooks.OptimizerHook):
        def after_train_iter(self):
            self.trainer.output["loss"].backward()

    with pytest.raises(HookError, match=r"Mine.after_train_iter: an optimizer hook of iMIX"):
        Mine()


def test_the_engine_offers_what_hooks_of_imix_touch(tmp_path):
    class Look(HookBase):
        def after_train_iter(self):
            trainer = self.trainer
            seen.update(
                start=(trainer.start_iter, trainer.start_epoch),
                limits=(trainer.max_iter, trainer.max_epoch, trainer.by_epoch),
                rate=trainer.optimizer.param_groups[0]["lr"],
                output=sorted(trainer.output),
                model_output=trainer.model_output.shape,
                data=len(trainer.data_loader),
                work_dir=trainer.work_dir,
                steps=trainer.gradient_accumulation_steps,
                hooks=trainer._hooks,
                cfg=trainer.cfg.log_config.period,
            )

    seen, hook = {}, Look()
    train(tmp_path, hook, config={"log_config": {"period": 3}})
    assert seen["start"] == (0, 0) and seen["limits"] == (3, 1, True)
    assert (seen["rate"], seen["output"], seen["data"]) == (0.05, ["loss"], 3)
    assert (seen["work_dir"], seen["hooks"], seen["cfg"]) == (str(tmp_path / "run"), [hook], 3)


def test_an_attribute_that_is_not_offered_names_hook_attribute_and_a_way(tmp_path):
    class Ask(HookBase):
        def before_train(self):
            self.trainer.loss_fn  # noqa: B018 - the question itself

    with pytest.raises(HookError, match=r"'ask' asks for trainer.loss_fn.*Trainer's loss="):
        train(tmp_path, Ask())


def test_the_log_buffer_passes_numbers_on_and_steps_with_the_iterations(tmp_path):
    class Put(HookBase):
        def after_train_iter(self):
            get_log_buffer().put_scalar("double", 2 * self.trainer.iter)
            get_log_buffer().put_scalars(one=1, smoothing_hint=False)

    class Take(HookBase):
        level = PriorityStatus.LOW

        def after_train_iter(self):
            buffer = self.trainer.log_buffer
            seen.append((dict(sorted(buffer.latest.items())), buffer.iter))

        def after_train_epoch(self):
            seen.append(dict(self.trainer.log_buffer.latest))
            seen.append(self.trainer.log_buffer.history("double").values())

    seen = []
    trainer = train(tmp_path, Put(), Take())
    assert [sorted(found) for found, _ in seen[:3]] == [["double", "loss", "one"]] * 3
    assert [(found["double"], step) for found, step in seen[:3]] == [(0, 0), (2, 1), (4, 2)]
    assert seen[3] == {}
    assert seen[4] == [(0.0, 0), (2.0, 1), (4.0, 2)]
    assert trainer.run.metrics.all_latest()["train/double"] == 4


def test_a_history_has_means_and_medians():
    history = HistoryBuffer()
    for value in (1, 2, 9):
        history.update(value)
    assert (history.latest(), history.median(3), history.avg(2)) == (9, 2, 5.5)
    assert history.global_mean() == 4


# --- the document -------------------------------------------------------------------------------

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
        "init_ema", *epoch, ("save_checkpoint_ema", 0),
        "load_bkp_state_dict", *epoch, ("save_checkpoint_ema", 1),
    ]  # fmt: skip
    rows = {row.hook: row.priority for row in trainer.timetable()}
    assert (rows["ema_iter_hook"], rows["ema_epoch_hook"]) == (50, 70)


def test_a_custom_hook_goes_behind_the_earlier_ones_of_its_level(tmp_path):
    class Act(HookBase):
        def __init__(self, label):
            self.label = label

        def after_train_iter(self):
            order.append(self.label)

    order = []
    train(tmp_path, Act("first"), Act("second"), max_iters=1)
    assert order == ["first", "second"]


@pytest.mark.parametrize("name", [
    "AutogradAnomalyDetectHook", "AutogradProfilerHook", "CheckPointHook", "EvaluateHook",
    "IterationTimerHook", "LRSchedulerHook", "OptimizerHook", "Fp16OptimizerHook",
    "PeriodicLogger", "CommonMetricLoggerHook", "JSONLoggerHook", "TensorboardLoggerHook",
])  # fmt: skip
def test_every_hook_of_the_documents_table_is_registered(name):
    assert HOOKS.get(name).__name__ == name


def test_a_name_that_nobody_registered_is_a_key_error_with_the_nearest():
    with pytest.raises(KeyError, match="Did you mean 'EMAIterHook'"):
        build_hook({"type": "EMAItreHook"})


# --- the catalogue ------------------------------------------------------------------------------


def models(tmp_path):
    return sorted(path.name for path in (tmp_path / "run").glob("*.pth"))


@pytest.mark.parametrize(
    ("arguments", "options", "names"),
    [
        ({}, {"max_epochs": 2}, ["m_epoch0_model", "m_epoch1_model"]),
        ({"epoch_period": 2}, {"max_epochs": 3}, ["m_epoch1_model"]),
        (
            {"iter_period": 2},
            {"max_epochs": 1},
            ["m_epoch0_iter2_model", "m_epoch0_model"],
        ),
        ({"iter_period": 2}, {"max_iters": 5}, ["m_iter0000001_model", "m_iter0000003_model"]),
        (
            {"max_num_checkpoints": 2},
            {"max_epochs": 4},
            ["m_epoch2_model", "m_epoch3_model"],
        ),
    ],
)
def test_checkpoints_have_imixs_names(arguments, options, names, tmp_path):
    train(tmp_path, engine.hooks.CheckPointHook(None, "m", **arguments), **options)
    assert models(tmp_path) == [*(f"{name}.pth" for name in names), "m_model_final.pth"]


def test_evaluations_are_written_and_the_best_is_kept(tmp_path):
    results = iter([0.5, 0.9, 0.7])
    hook = engine.hooks.EvaluateHook(lambda: {"accuracy": next(results)})
    train(tmp_path, hook, max_epochs=3)
    lines = (tmp_path / "run" / "eval_result.json").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(line["epoch"], line["iter"], line["accuracy"]) for line in found] == [
        (0, 3, 0.5), (1, 6, 0.9), (2, 9, 0.7),
    ]  # fmt: skip
    best = torch.load(tmp_path / "run" / "best_result.pth", weights_only=True)
    assert best["progress"]["epoch"] == 2
    alone = torch.load(tmp_path / "run" / "model_best.pth", weights_only=True)
    assert "optimizers" not in alone
    assert torch.equal(alone["model"]["0.weight"], best["model"]["0.weight"])


def test_evaluations_by_iteration_spare_the_end_of_an_epoch(tmp_path):
    hook = engine.hooks.EvaluateHook(lambda: {"a": 1.0}, eval_iter_period=3)
    train(tmp_path, hook, train_data=make_data(24), max_epochs=1)
    lines = (tmp_path / "run" / "eval_result.json").read_text().splitlines()
    assert [json.loads(line)["iter"] for line in lines] == [2, 6]


def test_json_lines_come_at_the_period_within_epochs(tmp_path):
    logger = engine.hooks.PeriodicLogger([engine.hooks.JSONLoggerHook()], 2)
    train(tmp_path, engine.hooks.IterationTimerHook(), logger, max_epochs=2)
    lines = (tmp_path / "run" / "training_status.json").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(line["epoch"], line["inner-iteration"]) for line in found] == [(0, 1), (1, 4)]
    assert {"loss", "iter_time"} <= set(found[0])


def test_a_logger_by_itself_writes_at_the_period_of_the_config(tmp_path):
    config = {"log_config": {"period": 3}}
    train(tmp_path, build_hook({"type": "JSONLoggerHook"}), max_iters=5, config=config)
    lines = (tmp_path / "run" / "training_status.json").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [2, 4]


def test_the_line_on_the_terminal_tells_losses_and_the_time_left(tmp_path, caplog):
    hooks = [engine.hooks.IterationTimerHook(), engine.hooks.PeriodicLogger(None, 3)]
    with caplog.at_level(logging.INFO, "imix"):
        train(tmp_path, *hooks)
    assert caplog.messages[0].startswith("epoch: 0  iter: 3  loss: ")
    assert "eta: 0:00:00" in caplog.messages[0]
    assert caplog.messages[-1].startswith("3 iterations in ")


def test_the_scheduler_steps_after_each_update_and_the_rate_used_is_logged(tmp_path):
    class Look(HookBase):
        def after_train_iter(self):
            seen.append(self.trainer.log_buffer.latest["lr"])

    seen, model = [], make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    hook = engine.hooks.LRSchedulerHook(optimizer, scheduler)
    train(tmp_path, hook, Look(), model=model, optimizer=optimizer)
    assert seen == [0.8, 0.4, 0.2]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)


def test_the_optimizer_hook_clips(tmp_path):
    class Look(Hook):
        def after_update(self, run):
            norms.append(torch.nn.utils.get_total_norm([p.grad for p in run.model.parameters()]))

    norms = []
    hook = engine.hooks.OptimizerHook(grad_clip={"max_norm": 0.1, "norm_type": 2})
    train(tmp_path, hook, Look(), max_iters=1)
    assert norms[0] == pytest.approx(0.1, rel=1e-3)


def test_half_precision_is_the_trainers(tmp_path):
    with pytest.raises(HookError, match="precision='fp16'"):
        train(tmp_path, engine.hooks.Fp16OptimizerHook())
