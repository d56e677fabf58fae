"""VISSL's logging hooks."""

import json
import logging

import pytest
import torch
from tests.tiny import make_trainer
from tests.vissl.phases import models, train

from hookloop.engine.hook import Hook
from hookloop_dialects.vissl import hooks as vissl
from hookloop_dialects.vissl.classy_vision import hooks as classy


@pytest.mark.parametrize(("frequency", "phases"), [(1, [0, 1, 2, 3]), (2, [0, 2]), (3, [0, 3])])
def test_vissl_checkpoints_are_those_that_were_measured(frequency, phases, tmp_path):
    config = {"CHECKPOINT": {"CHECKPOINT_FREQUENCY": frequency}}
    train(tmp_path, vissl.LogLossMetricsCheckpointHook(1), setup={"config": config})
    assert models(tmp_path / "run") == sorted(
        [
            "checkpoint.torch",
            "model_final_checkpoint_phase4.torch",
            *(f"model_phase{phase}.torch" for phase in phases),
        ]
    )


def test_vissl_checkpoints_by_iteration(tmp_path):
    config = {"CHECKPOINT": {"CHECKPOINT_FREQUENCY": 9, "CHECKPOINT_ITER_FREQUENCY": 6}}
    train(tmp_path, vissl.LogLossMetricsCheckpointHook(1), setup={"config": config})
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
    train(tmp_path, hook, setup={"config": {"LOG_FREQUENCY": frequency}})
    lines = [json.loads(one) for one in (tmp_path / "run" / "stdout.json").read_text().splitlines()]
    assert [line["iter"] for line in lines] == steps
    assert lines[1]["max_iterations"] == 15
    assert {"Rank", "ep", "iter", "lr", "loss", "btime(ms)", "eta", "peak_mem(M)"} <= set(lines[0])


def test_lines_have_the_form_of_vissl(tmp_path, caplog):
    (tmp_path / "run").mkdir()
    hooks = vissl.LogLossLrEtaHook(str(tmp_path / "run"), 2), vissl.LogLossMetricsCheckpointHook(1)
    with caplog.at_level("INFO"):
        train(tmp_path, *hooks, max_epochs=1, metrics={"size": lambda *_: torch.tensor(0.5)})
    first, second, *_ = [line for line in caplog.messages if line.startswith("Rank: 0; ")]
    assert first.startswith("Rank: 0; [ep: 0] iter: 0; lr: 0.05; loss: ")
    assert "max_iterations: 3;" in second and "rolling_eta" not in second
    assert "Rank: 0, name: test_size, value: {'size': 0.5}" in caplog.messages


def test_the_time_of_recent_batches_is_added_on_request(tmp_path):
    (tmp_path / "run").mkdir()
    train(tmp_path, vissl.LogLossLrEtaHook(str(tmp_path / "run"), 2))
    lines = [json.loads(one) for one in (tmp_path / "run" / "stdout.json").read_text().splitlines()]
    assert ["rolling_eta" in line for line in lines] == [False, False, True, True]
    assert "btime(2iters)(ms)" in lines[-1]


def test_what_a_hook_adds_is_in_the_next_line(tmp_path):
    class Add(classy.ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = classy.ClassyHook._noop

        def on_loss_and_meter(self, task):
            task.additional_log_data["mine"] = task.iteration

    (tmp_path / "run").mkdir()
    train(tmp_path, Add(), vissl.LogLossLrEtaHook(str(tmp_path / "run")))
    lines = [json.loads(one) for one in (tmp_path / "run" / "stdout.json").read_text().splitlines()]
    assert [line["mine"] for line in lines] == [line["iter"] for line in lines]


def test_memory_is_dumped_when_the_run_fails(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    trainer = make_trainer(hooks=[vissl.DumpMemoryOnException(), Fail()], run_dir=tmp_path / "run")
    with pytest.raises(RuntimeError, match="broken"):
        trainer.train()
    assert (tmp_path / "run" / "memory_rank_0_dump_1.txt").is_file()


def test_times_are_logged_within_and_after_phases(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "vissl"):
        train(tmp_path, vissl.LogPerfTimeMetricsHook(log_freq=2), max_epochs=1)
    lines = [line.rpartition(":")[0] for line in caplog.messages if line.startswith("Average")]
    assert lines == [
        "Average train batch time (ms) for 2 batches",
        "Average train batch time (ms) for 3 batches",
        "Average test batch time (ms) for 1 batches",
    ]
    tables = [line for line in caplog.messages if line.startswith("Times")]
    assert len(tables) == 2 and "optimizer_step:" in tables[1]


def test_without_cuda_nothing_is_logged_about_a_gpu(tmp_path, caplog):
    hooks = [vissl.LogGpuStatsHook(), vissl.LogGpuMemoryHook(0)]
    with caplog.at_level(logging.INFO, "vissl"):
        train(tmp_path, *hooks, max_epochs=1)
    assert not [record for record in caplog.records if record.name == "vissl"]


def test_an_output_of_several_tensors_is_checked(tmp_path):
    class Spoil(Hook):
        priority = "HIGHEST"

        def after_forward(self, run):
            spoiled = [run.output["output"], torch.tensor([float("nan")])]
            run.output = {**run.output, "output": spoiled}

    def step(run, batch):
        output = run.model(batch[0])
        return {"loss": output.square().mean(), "output": output}

    train(tmp_path, vissl.LogLossMetricsCheckpointHook(1), Spoil(), step=step, max_epochs=1)
    assert (tmp_path / "run" / "rank0_model_output.pth").is_file()
