"""Model, loss, averages and meters of a task."""

import pytest
import torch
from tests.tiny import make_classifier, make_data, make_trainer

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.vissl import ClassyHook, Task

METERS = {
    "names": ["accuracy_list_meter"],
    "accuracy_list_meter": {"num_meters": 1, "topk_values": [1, 2], "meter_names": ["res5"]},
}


class Look(ClassyHook):
    on_start = on_phase_start = on_step = on_end = ClassyHook._noop

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_phase_end(self, task):
        self.seen.append({meter.name: meter.value for meter in task.meters})
        self.speeds = [(entry["tag"], entry["im_per_sec"] > 0) for entry in task.perf_log]


def test_meters_of_the_config_measure_every_phase(tmp_path):
    hook = Look()
    trainer = make_classifier(
        hooks=[hook], setup={"config": {"METERS": METERS}}, run_dir=tmp_path / "run"
    )
    trainer.train()
    train, test = (seen["accuracy_list_meter"] for seen in hook.seen)
    assert list(test) == ["top_1", "top_2"] and list(test["top_1"]) == ["res5"]
    assert test["top_1"]["res5"] == pytest.approx(100 * trainer.run.metrics.latest("val/accuracy"))
    assert 0 <= train["top_1"]["res5"] <= train["top_2"]["res5"] <= 100
    assert hook.speeds == [("train_total", True), ("test", True)]


def test_meters_may_leave_out_the_training(tmp_path):
    hook, meters = Look(), {**METERS, "enable_training_meter": False}
    make_classifier(
        hooks=[hook], setup={"config": {"METERS": meters}}, run_dir=tmp_path / "run"
    ).train()
    assert hook.seen[0]["accuracy_list_meter"]["top_2"] == {"res5": 0.0}
    assert hook.seen[1]["accuracy_list_meter"]["top_2"]["res5"] > 0


def test_a_metric_of_the_run_has_the_forms_of_both_systems(tmp_path):
    hook = Look()
    make_classifier(hooks=[hook], run_dir=tmp_path / "run").train()
    value = hook.seen[1]["accuracy"]["accuracy"]
    assert isinstance(value, float) and dict(value.items()) == {0: value}


def test_meters_of_a_hooks_own_need_a_config():
    task = Task(make_trainer(setup={"config": {"METERS": METERS}}).run)
    assert task._build_meters()[0] is not task.meters[0]
    task = Task(make_trainer().run)
    task.hook = "ema"
    with pytest.raises(HookError, match="'ema' builds meters.*METERS.*AverageWeights"):
        task._build_meters()


def test_the_average_is_made_when_asked_for_and_kept_in_checkpoints(tmp_path):
    class Average(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def on_update(self, task):
            task.ema_model.update(task.base_model)

    def run(where, epochs, **options):
        config = {"HOOKS": {"EMA_MODEL": {"EMA_CONFIG": {"decay": 0.5}}}}
        trainer = make_trainer(
            hooks=[Average(), SaveCheckpoint()], max_epochs=epochs, setup={"config": config},
            run_dir=tmp_path / where, **options,
        )  # fmt: skip
        trainer.train()
        return next(iter(trainer.run._internals.shared.values())).ema_model

    run("cut", 1)
    resumed, whole = run("cut", 2, resume=True), run("whole", 2)
    assert whole.decay == 0.5
    for one, other in zip(resumed.module.parameters(), whole.module.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_hook_may_bring_an_average_of_its_own():
    task = Task(make_trainer(val_data=make_data(4)).run)
    task.ema_model = "mine"
    assert task.ema_model == "mine"
    task.perf_log = []
    assert task.perf_log == [] and task.base_loss is task.loss
