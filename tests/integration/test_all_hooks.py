"""Nearly all hooks in one training of the digits, and every artefact opened."""

import json
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from pyarrow import parquet
from safetensors.torch import load_file
from tests import readback

import hookloop.hooks
from hookloop import Hook
from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.writers.records import Image, Text

pytestmark = pytest.mark.slow

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
CONFIG = """\
_base_: {digits}/config.yaml
seed: 0
max_epochs: 6
train_data: {{batch_size: 128}}
schedule: null
clip_norm: null
default_hooks:
  metrics: {{type: WriteMetrics, every: 5}}
  checkpoint: {{type: SaveCheckpoint, every: 2 epochs, best: val/accuracy}}
hooks:
  limit: {{type: StopAfter, epochs: 4}}
  mistakes: null
  # watching
  plateau: {{type: StopOnPlateau, metric: val/f1, patience: 10}}
  gate: {{type: RequireMetric, metric: val/accuracy, above: 0.5, by: 3 epochs}}
  finite: {{type: StopOnNaN, gradients: true}}
  anomaly: {{type: DetectAnomaly, end: 2}}
  trace: TraceRun
  dump: DumpOnException
  # mechanics
  clip: {{type: ClipGradients, max_norm: 5.0}}
  average: {{type: AverageWeights, momentum: 0.05}}
  freeze: {{type: FreezeParameters, patterns: "0.*", until: 5 iters}}
  decay: {{type: ScheduleParameter, parameter: weight_decay, start: 0.01, end: 0.0}}
  buffers: SyncBuffers
  # statistics
  stats: {{type: ComputeStats, variables: {{loss: [mean, max], targets: [nancount]}}}}
  scores: {{type: ClassificationMetrics, metrics: [precision, recall, f1, specificity]}}
  # time and memory
  throughput: {{type: RecordThroughput, every: 5}}
  hook_times: RecordHookTimes
  memory: {{type: LogMemory, every: 5, summary_at: [3]}}
  complexity: CountComplexity
  profile: {{type: ProfileOperators, wait: 1, warmup: 1, active: 2}}
  cache: EmptyCache
  # writing
  log: {{type: LogVariables, variables: [val/*]}}
  text: {{type: LogMetrics, every: 5}}
  csv: WriteCSV
  tensorboard:
    {{type: WriteTensorBoard, every: 5, histograms: 1 epoch, gradients: true, graph: true}}
  wandb: {{type: WriteWandb, project: digits, mode: offline}}
  mlflow: {{type: WriteMLflow, experiment: digits}}
  trackio: {{type: WriteTrackio, project: all-hooks}}
  # output
  confusion: SaveConfusionMatrix
  predictions: {{type: SavePredictions, format: parquet}}
  lines: {{type: PlotLines, variables: [output], examples: 2, streams: [test]}}
  pictures: {{type: VisualizePredictions, examples: 9}}
  files: {{type: SaveFiles, files: ["{digits}/model.py"]}}
  source: {{type: SnapshotSource, root: "{digits}"}}
  export: {{type: ExportModel, format: safetensors}}
  program: {{type: ExportModel, format: export}}
"""


class EmitWeights(Hook):
    def after_val_epoch(self, run, metrics):
        run.emit(Image("weights/first", run.model[0].weight[:, 0].reshape(-1, 9).sigmoid()))
        run.emit(Text("notes", f"accuracy {metrics['accuracy']:.3f}"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The trainer after training and test; the config's modules are forgotten afterwards."""
    directory = tmp_path_factory.mktemp("all")
    with pytest.MonkeyPatch.context() as patch:
        import sys

        patch.setattr(sys, "path", [str(DIGITS), *sys.path])
        for name in ("data", "model"):
            patch.delitem(sys.modules, name, raising=False)
        (directory / "config.yaml").write_text(CONFIG.format(digits=DIGITS), encoding="utf-8")
        trainer = build(load(directory / "config.yaml", [f"run_dir={directory / 'run'}"]))
        trainer._planner.hooks.append(EmitWeights())
        outcome = trainer.train()
        trainer.test()
        for name in ("data", "model"):
            patch.delitem(sys.modules, name, raising=False)
    assert (outcome.status, outcome.reason) == ("stopped", "4 epochs are done")
    return trainer


@pytest.fixture(scope="module")
def run_dir(trained):
    return trained.run.dir


def test_there_are_far_more_than_25_hooks(trained):
    kinds = {type(hook).__name__ for hook in trained.run.hooks}
    assert len(kinds & set(hookloop.hooks.__all__)) >= 35


def test_no_hook_and_no_writer_was_switched_off(trained):
    given = {hook.name for hook in trained._planner.hooks}
    assert {hook.name for hook in trained.run.hooks} == given
    log = (trained.run.dir / "run.log").read_text(encoding="utf-8")
    assert "switched off" not in log  # Nor was a writer.


def test_it_learnt(trained):
    latest = trained.run.metrics.latest
    assert latest("test/accuracy") > 0.9 and latest("val/f1") > 0.9


def test_metrics_are_in_lines_and_in_the_summary(run_dir):
    points = readback.jsonl_points(run_dir / "metrics.jsonl", "val/f1")
    assert [step for step, _ in points] == [10, 20, 30, 40]
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    names = Counter(name for line in lines for name in line)
    for name in ("train/grad_norm", "train/samples_per_second", "train/memory/rss", "lr"):
        assert names[name] >= 4, name
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["status"] == "stopped" and summary["best"]["val/f1"]["value"] > 0.9


def test_the_table_has_a_row_per_epoch_and_one_for_the_test(run_dir):
    rows = readback.csv_rows(run_dir / "metrics.csv")
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4", "4"]
    assert float(rows[3]["train/loss/max"]) >= float(rows[3]["train/loss/mean"])
    assert rows[3]["val/targets/nancount"] == "0.0" and float(rows[4]["test/f1"]) > 0.9


def test_tensorboard_has_numbers_pictures_histograms_graph_and_text(run_dir):
    found = readback.events(run_dir / "tensorboard")
    tags = found.Tags()
    assert {"train/loss", "val/f1", "test/f1", "lr"} <= set(tags["scalars"])
    assert {"val/confusion", "weights/first", "val/predictions/0"} <= set(tags["images"])
    assert {"parameters/0/weight", "gradients/0/weight"} <= set(tags["histograms"])
    assert tags["graph"] and {"notes/text_summary", "config/text_summary"} <= set(tags["tensors"])
    assert [event.step for event in found.Scalars("val/f1")] == [10, 20, 30, 40]


def test_the_trackers_have_the_same_numbers(trained, run_dir):
    expected = readback.jsonl_points(run_dir / "metrics.jsonl", "val/f1")
    assert readback.wandb_points(run_dir, "val/f1") == expected
    (run_id,) = {hook.run_id for hook in trained.run.hooks if hook.name == "mlflow"}
    assert readback.mlflow_points(run_dir / "mlruns", run_id, "val/f1") == expected
    assert readback.trackio_points("all-hooks", run_dir.name, "val/f1") == expected
    params = readback.mlflow_client(run_dir / "mlruns").get_run(run_id).data.params
    assert params["optimizer.type"] == "AdamW"


def test_pictures_can_be_decoded(run_dir):
    names = {
        str(path.relative_to(run_dir))
        for path in run_dir.rglob("*.png")
        if "wandb" not in path.parts
    }
    local = {name for name in names if not name.startswith("mlruns")}
    assert {
        "confusion/val_epoch_4.png", "confusion/test_epoch_4.png",
        "visual/val_epoch_1_batch_0.png", "visual/test_epoch_4_batch_0.png",
        "plots/epoch_4/test/0_output.png", "plots/epoch_4/test/1_output.png",
        "images/weights/first/00000010.png",
    } <= local  # fmt: skip
    for name in local:
        assert readback.png(run_dir / name).std() > 0, name


def test_the_confusion_matrix_counts_the_test(trained, run_dir):
    rows = readback.csv_rows(run_dir / "confusion" / "test_epoch_4.csv")
    counts = np.array([[int(row[str(column)]) for column in range(10)] for row in rows])
    accuracy = np.trace(counts) / counts.sum()
    assert trained.run.metrics.latest("test/accuracy") == pytest.approx(accuracy)


def test_the_predictions_are_those_of_the_averaged_weights(trained, run_dir):
    table = parquet.read_table(run_dir / "predictions" / "test_epoch_4.parquet").to_pydict()
    scores = np.stack([table[f"output_{index}"] for index in range(10)], 1)
    accuracy = np.mean(scores.argmax(1) == np.array(table["targets"]))
    assert trained.run.metrics.latest("test/accuracy") == pytest.approx(accuracy)


def test_the_model_is_exported_in_two_ways(trained, run_dir):
    weights = load_file(run_dir / "model.safetensors")
    model = trained.run.model.eval()
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())
    program = torch.export.load(run_dir / "model.pt2").module()
    inputs = trained.run.batch[0][:7]
    assert torch.allclose(program(inputs), model(inputs), atol=1e-5)


def test_checkpoints_hold_every_hook_and_load_as_plain_data(trained, run_dir):
    (best,) = run_dir.glob("best_accuracy_epoch_*.pth")
    last = run_dir / (run_dir / "last_checkpoint").read_text().strip()
    for path in (best, last):
        checkpoint = torch.load(path, weights_only=True)
        assert set(checkpoint["hooks"]) >= {"average", "plateau", "wandb", "mlflow", "console"}


def test_the_profile_can_be_loaded(run_dir):
    (trace,) = (run_dir / "profile").glob("trace_*.json")
    assert any("conv" in event["name"] for event in json.loads(trace.read_text())["traceEvents"])


def test_texts_tell_what_they_should(run_dir):
    read = {
        name: (run_dir / name).read_text(encoding="utf-8")
        for name in ("run.log", "hook_times.txt", "complexity.txt", "memory_iter_3.txt")
    }
    assert "epoch 4  iter 40  val: loss" in read["run.log"]
    assert "tensorboard" in read["hook_times.txt"]
    assert all(read.values())
    trace = yaml.safe_load((run_dir / "trace.yaml").read_text(encoding="utf-8"))
    assert trace["exit_status"] == 0 and trace["epochs_done"] == 4


def test_files_and_source_are_kept(run_dir):
    assert (run_dir / "files").rglob("model.py")
    with zipfile.ZipFile(run_dir / "source.zip") as archive:
        assert {"model.py", "data.py", "config.yaml"} <= set(archive.namelist())
