"""iMIX's stages at our mount points, with its counters and levels."""

import pytest
import torch
from tests.imix.tracing import tracing, train
from tests.imix.updating import ScaleItself, StepItself, parts
from tests.tiny import make_data, make_model, make_trainer

from hookloop.engine.hook import Hook
from hookloop_dialects.imix import HookBase, PriorityStatus, engine
from hookloop_dialects.imix.adapter import ImixAdapter, adapt, level_of, priority_of
from hookloop_dialects.imix.trainer import EngineFacade


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
        ("after_train_epoch", 2, 1, 0),
        ("before_train_epoch", 2, 1, 1),
        ("before_train_iter", 2, 0, 1),
        ("after_train_iter", 2, 0, 1),
        ("before_train_iter", 3, 1, 1),
        ("after_train_iter", 3, 1, 1),
        ("after_train_epoch", 4, 1, 1),
        ("after_train", 4, 1, 1),
    ]


def test_by_iteration_no_stage_of_an_epoch_is_called(tmp_path):
    hook = tracing(lambda trainer: (trainer.iter, trainer.max_iter, trainer.by_epoch))
    train(tmp_path, hook, max_iters=4)
    assert [call[0] for call in hook.calls] == [
        "before_train", *["before_train_iter", "after_train_iter"] * 4, "after_train",
    ]  # fmt: skip
    assert hook.calls[-2] == ("after_train_iter", 3, 4, False)
    assert hook.calls[-1] == ("after_train", 3, 4, False)


def test_after_train_comes_after_a_failure_too(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    hook = tracing(lambda trainer: ())
    trainer = make_trainer(hooks=[hook, Fail()], run_dir=tmp_path / "run")
    with pytest.raises(RuntimeError, match="broken"):
        trainer.train()
    assert hook.calls[-1] == ("after_train",)


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


def test_a_custom_hook_goes_behind_the_earlier_ones_of_its_level(tmp_path):
    class Act(HookBase):
        def __init__(self, label):
            self.label = label

        def after_train_iter(self):
            order.append(self.label)

    order = []
    train(tmp_path, Act("first"), Act("second"), max_iters=1)
    assert order == ["first", "second"]


def test_a_run_without_training_calls_no_stage(tmp_path):
    hook = tracing(lambda trainer: ())
    make_trainer(hooks=[hook], data={"test": make_data(4)}, run_dir=tmp_path / "run").test()
    assert hook.calls == []


def test_an_early_hook_does_not_act_in_validations(tmp_path):
    class Count(HookBase):
        _level = PriorityStatus.HIGHEST

        def after_train_iter(self):
            seen.append(self.trainer.iter)

    seen = []
    train(tmp_path, Count(), val_data=make_data(8))
    assert seen == [0, 1, 2]


def test_the_level_of_an_installed_imix_is_read_by_its_name():
    class Theirs:
        level = type("Level", (), {"name": "LOWER", "value": 50})()

    assert level_of(Theirs()) == "LOWER"
    assert priority_of(Theirs()).name == "VERY_LOW"
    assert level_of(object()) == "NORMAL"


def test_a_catalogued_hook_keeps_its_level():
    row = engine.hooks.AutogradAnomalyDetectHook()
    row.level = "LOW"
    (native,) = adapt(row)
    assert native.name == "detect_anomaly" and native.priority.name == "LOW"
    (adapted,) = adapt(HookBase())
    assert isinstance(adapted, ImixAdapter) and not adapted.acts


def test_hooks_share_the_engine_of_their_run(tmp_path):
    class Look(HookBase):
        def before_train(self):
            seen.append(self.trainer)

    seen = []
    train(tmp_path, Look(), Look())
    assert seen[0] is seen[1] and isinstance(seen[0], EngineFacade)


# --- hooks that make the update -------------------------------------------------------------------


def test_a_hook_makes_the_update_between_the_levels(tmp_path):
    class Halve(HookBase):
        _level = PriorityStatus.HIGHER

        def after_train_iter(self):
            order.append("halve")
            self.trainer.output["loss"] = self.trainer.output["loss"] / 2

    class Look(HookBase):
        def after_train_iter(self):
            order.append("look")

    class Native(Hook):
        def after_loss(self, run):
            order.append("native")

    class Update(StepItself):
        def after_train_iter(self):
            order.append("update")
            super().after_train_iter()

    order, own = [], parts()
    train(tmp_path, Look(), Update(), Native(), Halve(), max_iters=1, **own)
    assert order == ["halve", "native", "update", "look"]
    assert own["model"][0].weight.grad is not None  # Kept until the hook clears it.


def test_the_timetable_shows_where_the_update_is_made(tmp_path):
    trainer = make_trainer(hooks=[StepItself()], run_dir=tmp_path / "run")
    rows = [(row.point, row.hook) for row in trainer.timetable()]
    assert ("after_backward", "step_itself") in rows


def test_hooks_between_high_and_a_lower_update_are_named(tmp_path, caplog):
    hook = StepItself()
    hook.level = "LOW"
    with caplog.at_level("WARNING", "imix"):
        train(tmp_path, hook, tracing(), max_iters=1)
    assert "'step_itself' has the level LOW and makes the update before trace" in caplog.text


@pytest.mark.parametrize(
    ("kind", "precision", "message"),
    [
        (StepItself, "fp16", "does not scale the loss"),
        (ScaleItself, "fp32", "scales the loss, and the run has another precision"),
        (ScaleItself, "fp16", ""),
        (StepItself, "fp32", ""),
    ],
)
def test_precision_and_scaler_that_do_not_fit_are_reported(
    kind, precision, message, tmp_path, caplog
):
    with caplog.at_level("WARNING", "imix"):
        train(tmp_path, kind(), max_iters=1, precision=precision)
    assert message in caplog.text and bool(caplog.text) is bool(message)
