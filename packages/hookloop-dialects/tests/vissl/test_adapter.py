"""The events of ClassyVision and VISSL at our mount points."""

from pathlib import Path

import pytest
import torch
from tests.tiny import make_data, make_trainer
from tests.vissl.phases import tracing

from hookloop import Trainer
from hookloop.engine.hook import Hook
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.vissl import ClassyHook
from hookloop_dialects.vissl.adapter import ClassyAdapter, adapt
from hookloop_dialects.vissl.classy_vision import hooks as classy


def counters(task):
    phase = f"{'T' if task.train else 'e'}{task.phase_idx}"
    return phase, task.iteration, task.local_iteration_num


def test_events_and_counters_are_those_that_vissl_was_measured_with(tmp_path):
    hook = tracing(counters)
    # Two train batches, one test batch, two epochs.
    make_trainer(
        hooks=[hook],
        train_data=make_data(8),
        val_data=make_data(4),
        max_epochs=2,
        run_dir=tmp_path / "run",
    ).train()

    def step(phase, iteration, local):
        return [
            ("on_forward", phase, iteration, local),
            ("on_loss_and_meter", phase, iteration, local),
            ("on_backward", phase, iteration, local),
            ("on_update", phase, iteration, local),
            ("on_step", phase, iteration + 1, local + 1),
        ]

    def test(phase, iteration, local):
        return [
            ("on_phase_start", phase, iteration, local),
            ("on_forward", phase, iteration, local),
            ("on_loss_and_meter", phase, iteration, local),
            ("on_step", phase, iteration, local + 1),
            ("on_phase_end", phase, iteration, local + 1),
        ]

    assert hook.calls == [
        ("on_start", "T-1", 0, -1),
        ("on_phase_start", "T0", 0, 0),
        *step("T0", 0, 0),
        *step("T0", 1, 1),
        ("on_phase_end", "T0", 2, 2),
        *test("e1", 2, 3),
        ("on_phase_start", "T2", 2, 5),
        *step("T2", 2, 5),
        *step("T2", 3, 6),
        ("on_phase_end", "T2", 4, 7),
        *test("e3", 4, 8),
        ("on_end", "e3", 4, 9),
    ]


def test_a_test_has_a_start_a_phase_and_an_end_of_its_own(tmp_path):
    hook = tracing(lambda task: (task.phase_type, task.test_only))
    trainer = make_trainer(hooks=[hook], data={"test": make_data(4)}, run_dir=tmp_path / "run")
    trainer.test()
    assert [call[0] for call in hook.calls] == [
        "on_start", "on_phase_start", "on_forward", "on_loss_and_meter", "on_step",
        "on_phase_end", "on_end",
    ]  # fmt: skip
    assert hook.calls[2] == ("on_forward", "test", True)


def test_on_exception_is_called_and_the_error_continues(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("the user's own error")

    hook = tracing(lambda task: (task.iteration,), ["on_exception", "on_end"])
    trainer = make_trainer(hooks=[hook, Fail()], run_dir=tmp_path / "run")
    with pytest.raises(RuntimeError, match="the user's own error"):
        trainer.train()
    assert hook.calls == [("on_exception", 1)]


def test_the_state_of_a_hook_is_saved_and_restored(tmp_path):
    class Count(ClassyHook):
        on_start = on_phase_start = on_phase_end = on_end = ClassyHook._noop

        def __init__(self):
            super().__init__()
            self.state.steps = 0
            self.state.history = {"train": []}

        def on_step(self, task):
            self.state.steps += 1
            self.state.history["train"].append(task.local_iteration_num)

    def train(epochs, **options):
        hook = Count()
        make_trainer(
            hooks=[hook, SaveCheckpoint()],
            max_epochs=epochs,
            val_data=make_data(4),
            run_dir=tmp_path / options.pop("name", "run"),
            **options,
        ).train()
        return hook.state

    train(1)
    resumed, whole = train(3, resume=True), train(3, name="whole")
    assert resumed.steps == whole.steps == 12
    assert resumed.history == whole.history


def test_classy_checkpoints_come_after_all_other_hooks(tmp_path):
    trainer = make_trainer(
        hooks=[classy.CheckpointHook(str(tmp_path)), classy.LossLrMeterLoggingHook()]
    )
    rows = [row.hook for row in trainer.timetable() if row.point == "after_train_epoch"]
    assert rows == ["loss_lr_meter_logging_hook", "checkpoint_hook"]


def test_events_that_are_noops_or_missing_are_not_attached():
    hook = tracing(lambda task: (), ["on_step", "on_backward"])
    points = [row.point for row in make_trainer(hooks=[hook]).timetable()]
    assert points == [
        "before_run", "before_update", "after_train_iter", "after_val_iter", "after_test_iter",
    ]  # fmt: skip


def test_a_noop_of_an_installed_package_is_known_by_its_name():
    def _noop(self, *args): ...

    base = type("ClassyHook", (), {"__module__": "classy_vision.hooks.classy_hook"})
    mine = type("Mine", (base,), {"on_step": _noop, "on_end": lambda self, task: None})
    adapted = ClassyAdapter(mine())
    assert adapted.acts and "after_train_iter" not in vars(adapted)


def test_a_hook_without_a_state_has_none_in_checkpoints():
    plain = type("Plain", (), {"on_end": lambda self, task: None})
    adapted = ClassyAdapter(plain())
    assert adapted.state_dict() == {}
    adapted.load_state_dict({"x": 1})


def test_native_hooks_stand_for_rows():
    assert [hook.name for hook in adapt(classy.ProgressBarHook())] == ["show_progress"]
    quiet = type("Quiet", (ClassyHook,), dict.fromkeys(
        ["on_start", "on_phase_start", "on_step", "on_phase_end", "on_end"], ClassyHook._noop
    ))  # fmt: skip
    (adapted,) = adapt(quiet())
    assert isinstance(adapted, ClassyAdapter) and not adapted.acts


@pytest.mark.parametrize("validates", [True, False])
def test_at_the_end_the_model_is_in_the_mode_of_the_last_phase(tmp_path, validates):
    class Export(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = ClassyHook._noop

        def on_end(self, task):
            self.seen = task.train, task.phase_type, task.model.training
            task.model(torch.ones(2, 4))  # As an export would. In training mode it is a batch.

    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    data = make_data(8)
    trainer = Trainer(
        model,
        train_data=data,
        val_data=data if validates else None,
        loss=torch.nn.functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        hooks=[hook := Export()],
        run_dir=tmp_path / "run",
    )
    trainer.train()
    trains = not validates
    assert hook.seen == (trains, "train" if trains else "test", trains)
    assert model[0].num_batches_tracked == trainer.run.progress.iter + trains


@pytest.mark.parametrize(("folder", "stores"), [("/data", ("/data",)), (None, ()), (Path("a"), ())])
def test_the_folder_of_a_hook_is_where_a_resume_looks(folder, stores, tmp_path):
    class Quiet(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

    hook = Quiet()
    hook.checkpoint_folder = folder
    assert ClassyAdapter(hook).stores(tmp_path) == stores
