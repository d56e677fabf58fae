"""The average of the weights."""

import json

import torch
from tests.tiny import make_classifier
from tests.vissl.phases import train

from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.vissl import ClassyHook
from hookloop_dialects.vissl.hooks import EmaHook


def test_the_average_copies_in_the_warm_up(tmp_path):
    same = []

    class Look(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def on_update(self, task):
            same.append(torch.equal(task.ema_model.module[0].weight, task.model[0].weight))

    train(tmp_path, EmaHook(update_iter=1, warmup=0.5), Look(), max_epochs=2)
    assert same == [True, True, True, False, False, False]


def test_the_average_is_vissls_formula_and_survives_a_resume(tmp_path):
    def run(where, epochs, **options):
        hook = EmaHook(warmup=0.0, decay=0.5)
        trainer = train(tmp_path / where, hook, SaveCheckpoint(), max_epochs=epochs, **options)
        return next(iter(trainer.run._internals.shared.values())).ema_model.module[0].weight

    run("cut", 1)
    assert torch.equal(run("cut", 2, resume=True), run("whole", 2))


def test_the_average_is_measured_with_the_configs_meters(tmp_path):
    meters = {"names": ["accuracy_list_meter"],
              "accuracy_list_meter": {"num_meters": 1, "topk_values": [1]}}  # fmt: skip
    hook = EmaHook(enable_ema_meters=True, warmup=1.0)  # The average is a copy to the end.
    folder = tmp_path / "run"
    trainer = make_classifier(hooks=[hook], setup={"config": {"METERS": meters}}, run_dir=folder)
    trainer.train()
    lines = [json.loads(line) for line in (folder / "metrics.json").read_text().splitlines()]
    assert [line["phase_idx"] for line in lines] == [0, 1]
    expected = 100 * trainer.run.metrics.latest("val/accuracy")
    assert abs(lines[1]["test_accuracy_list_meter_ema"]["top_1"]["0"] - expected) < 1e-3
