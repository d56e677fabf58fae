"""The hooks of ClassyVision and VISSL: the files they leave and the steps they log."""

import json
import logging

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer, weights

from hookloop.core.hook import Hook
from hookloop.dialects.vissl import build_hook
from hookloop.dialects.vissl import hooks as vissl
from hookloop.dialects.vissl.classy_vision import hooks as classy
from hookloop.dialects.vissl.hooks import SSLClassyHookFunctions, default_hook_generator


def train(tmp_path, *hooks, **options):
    parts = {"val_data": make_data(4), "max_epochs": 5, "run_dir": tmp_path / "run"}
    trainer = make_trainer(hooks=hooks, **(parts | options))
    trainer.train()
    return trainer


def models(folder):
    return sorted(path.name for path in folder.glob("*.torch"))


@pytest.mark.parametrize(
    ("options", "phases"),
    [
        ({}, [0, 2, 4, 6, 8]),
        ({"checkpoint_period": 2}, [2, 6]),
        ({"phase_types": ["train", "test"], "checkpoint_period": 3}, [2, 5, 8]),
        ({"phase_types": ["test"]}, [1, 3, 5, 7, 9]),
    ],
)
def test_classy_checkpoints_are_written_after_the_phases_they_name(options, phases, tmp_path):
    folder = tmp_path / "saved"
    folder.mkdir()
    train(tmp_path, classy.CheckpointHook(str(folder), **options))
    assert models(folder) == sorted(
        ["checkpoint.torch", *(f"model_phase-{phase}_end.torch" for phase in phases)]
    )


def test_a_classy_checkpoint_needs_its_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        train(tmp_path, classy.CheckpointHook(str(tmp_path / "nowhere")))


def test_classy_checkpoints_come_after_all_other_hooks(tmp_path):
    trainer = make_trainer(
        hooks=[classy.CheckpointHook(str(tmp_path)), classy.LossLrMeterLoggingHook()]
    )
    rows = [row.hook for row in trainer.timetable() if row.point == "after_train_epoch"]
    assert rows == ["loss_lr_meter_logging_hook", "checkpoint_hook"]


@pytest.mark.parametrize(("frequency", "phases"), [(1, [0, 1, 2, 3]), (2, [0, 2]), (3, [0, 3])])
def test_vissl_checkpoints_are_those_that_were_measured(frequency, phases, tmp_path):
    config = {"CHECKPOINT": {"CHECKPOINT_FREQUENCY": frequency}}
    train(tmp_path, vissl.LogLossMetricsCheckpointHook(1), config=config)
    assert models(tmp_path / "run") == sorted(
        [
            "checkpoint.torch",
            "model_final_checkpoint_phase4.torch",
            *(f"model_phase{phase}.torch" for phase in phases),
        ]
    )


def test_vissl_checkpoints_by_iteration(tmp_path):
    config = {"CHECKPOINT": {"CHECKPOINT_FREQUENCY": 9, "CHECKPOINT_ITER_FREQUENCY": 6}}
    train(tmp_path, vissl.LogLossMetricsCheckpointHook(1), config=config)
    assert "model_iteration12.torch" in models(tmp_path / "run")
    assert "model_iteration3.torch" not in models(tmp_path / "run")


def test_vissl_metrics_have_a_line_per_phase(tmp_path):
    def size(output, targets):
        return output.abs().mean()

    train(tmp_path, vissl.LogLossMetricsCheckpointHook(1), max_epochs=2, metrics={"size": size})
    lines = [
        json.loads(one) for one in (tmp_path / "run" / "metrics.json").read_text().splitlines()
    ]
    assert [(line["iteration"], line["phase_idx"], line["train_phase_idx"]) for line in lines] == [
        (3, 0, 0), (3, 1, 0), (6, 2, 1), (6, 3, 1),
    ]  # fmt: skip
    assert "test_size" in lines[1] and "test_size" not in lines[0]


@pytest.mark.parametrize(
    ("frequency", "steps"),
    [(10, [0, 1, 5, 10]), (4, [0, 1, 4, 5, 8, 10, 12]), (100, [0, 1, 5, 10])],
)
def test_vissl_logs_the_iterations_that_it_logged(frequency, steps, tmp_path):
    (tmp_path / "run").mkdir()
    hook = vissl.LogLossLrEtaHook(str(tmp_path / "run"))
    train(tmp_path, hook, config={"LOG_FREQUENCY": frequency})
    lines = [json.loads(one) for one in (tmp_path / "run" / "stdout.json").read_text().splitlines()]
    assert [line["iter"] for line in lines] == steps
    assert lines[1]["max_iterations"] == 15
    assert {"Rank", "ep", "iter", "lr", "loss", "btime(ms)", "eta", "peak_mem(M)"} <= set(lines[0])


def test_what_a_hook_adds_is_in_the_next_line(tmp_path):
    class Add(classy.ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = classy.ClassyHook._noop

        def on_loss_and_meter(self, task):
            task.additional_log_data["mine"] = task.iteration

    (tmp_path / "run").mkdir()
    train(tmp_path, Add(), vissl.LogLossLrEtaHook(str(tmp_path / "run")))
    lines = [json.loads(one) for one in (tmp_path / "run" / "stdout.json").read_text().splitlines()]
    assert [line["mine"] for line in lines] == [line["iter"] for line in lines]


def test_the_average_is_classys_and_is_used_in_test_phases_only(tmp_path):
    decay, used = 0.5, []
    mine = weights(make_model())

    class Follow(Hook):
        """The average as ClassyVision defines it, by hand."""

        priority = "LOWEST"

        def after_train_iter(self, run):
            for name, value in run.model.state_dict().items():
                mine[name] = decay * mine[name] + (1 - decay) * value

        def after_val_iter(self, run):
            used.append(all(torch.allclose(v, mine[n]) for n, v in weights(run.model).items()))

    hook = build_hook({"name": "ema_model_weights", "decay": decay})
    trainer = train(tmp_path, hook, Follow(), max_epochs=2)
    assert used == [True, True]
    assert not torch.allclose(trainer.run.model[0].weight, mine["0.weight"])


def test_a_loss_that_is_not_finite_fails_at_once(tmp_path):
    class Spoil(Hook):
        priority = "HIGHEST"

        def after_loss(self, run):
            if run.progress.iter == 2:
                run.loss = run.loss * float("nan")

    trainer = make_trainer(hooks=[vissl.CheckNanLossHook(), Spoil()], run_dir=tmp_path / "run")
    with pytest.raises(FloatingPointError, match="iteration 3"):
        trainer.train()


def test_an_output_that_is_not_finite_is_kept_and_the_run_goes_on(tmp_path):
    class Spoil(Hook):
        priority = "HIGHEST"

        def after_forward(self, run):
            if run.progress.iter == 1 and run.phase == "train":
                run.output = run.output + float("inf") * torch.tensor([[0.0], [1], [1], [1]]) * 0

    trainer = train(tmp_path, vissl.CheckNanModelOutputHook(1), Spoil(), max_epochs=1)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"rank0_model_output.pth", "rank0_input_sample.pth"} <= names
    assert trainer.run.outcome.status == "completed"


def test_parameters_are_frozen_for_their_first_iterations(tmp_path):
    seen = []

    class Look(Hook):
        def after_update(self, run):
            seen.append(run.model[0].weight.grad is None)

    config = {"MODEL": {"TEMP_FROZEN_PARAMS_ITER_MAP": [["module.0.weight", 2]]}}
    train(tmp_path, vissl.FreezeParametersHook(), Look(), max_epochs=1, config=config)
    assert seen == [True, True, False]


def test_classes_without_labels_are_masked_in_test_phases(tmp_path):
    seen = []

    class Look(Hook):
        def after_val_iter(self, run):
            seen.append(run.output.isinf().any(0).tolist())

    inputs = torch.randn(8, 4)
    data = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs, torch.tensor([0, 2] * 4)), batch_size=4
    )
    model = torch.nn.Linear(4, 3)
    train(
        tmp_path,
        vissl.ModelOutputMaskHook(),
        Look(),
        model=model,
        train_data=data,
        val_data=data,
        loss=torch.nn.functional.cross_entropy,
        max_epochs=1,
    )
    assert seen == [[False, True, False]] * 2


def test_the_average_of_vissl_copies_in_the_warm_up(tmp_path):
    same = []

    class Look(classy.ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = classy.ClassyHook._noop

        def on_update(self, task):
            same.append(torch.equal(task.ema_model[0].weight, task.model[0].weight))

    train(tmp_path, vissl.EmaHook(update_iter=1, warmup=0.5), Look(), max_epochs=2)
    assert same == [True, True, True, False, False, False]


def test_the_log_of_classy_names_phase_and_meters(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "classy_vision"):
        train(tmp_path, classy.LossLrMeterLoggingHook(log_freq=2), max_epochs=2)
    kinds = [message.split(",")[0:2] for message in caplog.messages]
    assert [kind[0].split(":")[0] for kind in kinds] == [
        "Approximate meters", "Synced meters", "Synced meters",
    ] * 2  # fmt: skip
    assert "train phase: 0" in caplog.messages[0] and "test phase: 1" in caplog.messages[-1]


def test_predictions_are_appended_in_test_phases(tmp_path):
    def step(run, batch):
        output = run.model(batch["input"])
        return {"loss": output.square().mean(), "output": output}

    batch = {"input": torch.ones(2, 4), "id": torch.tensor([7, 8]), "target": torch.tensor([1, 0])}
    (tmp_path / "run").mkdir()
    model = torch.nn.Linear(4, 2)
    train(
        tmp_path,
        classy.OutputCSVHook(str(tmp_path / "run")),
        model=model,
        train_data=[batch],
        val_data=[batch],
        step=step,
        max_epochs=1,
    )
    rows = [
        line.split("\t") for line in (tmp_path / "run" / "predictions.csv").read_text().splitlines()
    ]
    assert [row[0] for row in rows] == ["sample_id", "7", "8"]
    assert [row[2].strip() for row in rows] == ["target", "1", "0"]


def test_memory_is_dumped_when_the_run_fails(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    trainer = make_trainer(hooks=[vissl.DumpMemoryOnException(), Fail()], run_dir=tmp_path / "run")
    with pytest.raises(RuntimeError, match="broken"):
        trainer.train()
    assert (tmp_path / "run" / "memory_rank_0_dump_1.txt").is_file()


def test_the_generator_makes_the_hooks_that_a_config_asks_for(tmp_path):
    config = {
        "HOOKS": {"PERF_STATS": {"MONITOR_PERF_STATS": True}, "CHECK_NAN": True},
        "MODEL": {"GRAD_CLIP": {"USE_GRAD_CLIP": True, "MAX_NORM": 3}},
        "CHECKPOINT": {"DIR": str(tmp_path / "run")},
    }
    hooks = default_hook_generator(config)
    assert [type(hook).__name__ for hook in hooks] == [
        "LogPerfTimeMetricsHook",
        "LogGpuStatsHook",
        "LogGpuMemoryHook",
        "GradClipHook",
        "SetDataSamplerEpochHook",
        "LogLossMetricsCheckpointHook",
        "LogLossLrEtaHook",
        "CheckNanLossHook",
        "CheckNanModelOutputHook",
    ]
    (tmp_path / "run").mkdir()
    assert train(tmp_path, *hooks, config=config).run.outcome.status == "completed"


def test_the_events_of_vissl_have_on_exception():
    assert len(SSLClassyHookFunctions) == 10
