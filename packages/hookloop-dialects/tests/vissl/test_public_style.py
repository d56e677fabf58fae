"""Hooks in the style of the public ones, with the calls and effects that their systems have.

They are written here as projects write them: against the imports of the foreign packages, which
are not installed.
"""

import json
import logging

import pytest
import torch
from tests.tiny import make_classifier, make_trainer
from tests.vissl.learners import Encoder, TeacherLoss, views
from tests.vissl.phases import train
from torch.utils.data import DataLoader, Dataset

from hookloop import dialects

with dialects.alias("vissl"):
    from classy_vision.generic.distributed_util import get_rank, is_primary
    from classy_vision.generic.util import (
        flatten_dict,
        get_batchsize_per_replica,
        get_checkpoint_dict,
        recursive_copy_to_device,
        save_checkpoint,
    )
    from classy_vision.hooks import ClassyHook, build_hook, register_hook
    from fvcore.common.file_io import PathManager
    from fvcore.nn.precise_bn import update_bn_stats
    from vissl.hooks.log_hooks import LogLossMetricsCheckpointHook
    from vissl.models import build_model
    from vissl.utils.checkpoint import CheckpointWriter, is_checkpoint_phase
    from vissl.utils.io import save_file


class Quiet(ClassyHook):
    on_start = ClassyHook._noop
    on_phase_start = ClassyHook._noop
    on_step = ClassyHook._noop
    on_phase_end = ClassyHook._noop
    on_end = ClassyHook._noop


class Samples(Dataset):
    """Samples as ClassyVision's data sets give them."""

    def __init__(self, count=12):
        self.inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        one = self.inputs[index]
        return {"input": one, "target": int(one[:3].argmax()), "id": index}


def loaders(val=8):
    return {"train_data": DataLoader(Samples(), 4), "val_data": DataLoader(Samples(val), 4)}


# --- ClassyVision -------------------------------------------------------------------------------


@register_hook("style_logging")
class Logging(Quiet):
    """Logs the mean loss, meters and rate of a phase."""

    def __init__(self, log_freq):
        super().__init__()
        self.log_freq = log_freq

    def on_step(self, task):
        if task.train and len(task.losses) % self.log_freq == 0:
            self.log(task, "within")

    def on_phase_end(self, task):
        self.log(task, "end")

    def log(self, task, when):
        index = task.train_phase_idx if task.train else task.eval_phase_idx
        share = len(task.losses) / task.num_batches_per_phase
        line = f"{when} [{get_rank()}] {task.phase_type} {index} {share:.0%}"
        loss = sum(task.losses) / len(task.losses)
        rate = f" lr {task.optimizer.options_view.lr:.2f}" if task.train else ""
        logging.info("%s loss %.6f %s%s", line, loss, flatten_dict(_meters(task)), rate)


def _meters(task):
    return {meter.name: meter.value for meter in task.meters}


def test_lines_of_losses_meters_and_rates(tmp_path, caplog):
    hook = build_hook({"name": "style_logging", "log_freq": 2})
    with caplog.at_level(logging.INFO):
        trainer = make_classifier(hooks=[hook], run_dir=tmp_path / "run", **loaders(12))
        trainer.train()
    lines = [line for line in caplog.messages if line.startswith(("within", "end"))]
    assert [line.partition(" loss")[0] for line in lines] == [
        "within [0] train 0 67%", "end [0] train 0 100%", "end [0] test 0 100%",
    ]  # fmt: skip
    loss = float(lines[2].partition(" loss ")[2].split()[0])
    assert loss == pytest.approx(trainer.run.metrics.latest("val/loss"), abs=1e-5)
    accuracy = trainer.run.metrics.latest("val/accuracy")
    assert f"{{'accuracy_accuracy': {accuracy}}}" in lines[2] and "lr 0.10" in lines[0]


class KeepAverage(Quiet):
    """Averages the weights, and has the model use the average in test phases."""

    def __init__(self, decay):
        super().__init__()
        self.decay = decay
        self.state.raw, self.state.average = {}, {}

    def on_start(self, task):
        if not self.state.raw:
            self.state.raw = self.copy(task)
            self.state.average = self.copy(task)

    def on_phase_start(self, task):
        chosen = self.state.raw if task.train else self.state.average
        with torch.no_grad():
            for name, value in task.base_model.named_parameters():
                value.copy_(chosen[name])

    def on_step(self, task):
        if task.train:
            for name, value in task.base_model.named_parameters():
                old = self.state.average[name]
                self.state.average[name] = self.decay * old + (1 - self.decay) * value.detach()

    def on_phase_end(self, task):
        if task.train:
            self.state.raw = self.copy(task)

    def copy(self, task):
        return {name: value.detach().clone() for name, value in task.base_model.named_parameters()}


def test_a_test_phase_uses_the_average_and_a_train_phase_the_weights(tmp_path):
    seen = []

    class Look(Quiet):
        def on_step(self, task):
            seen.append((task.phase_type, task.base_model[0].weight.detach().clone()))

    hook = KeepAverage(0.5)
    train(tmp_path, hook, Look(), max_epochs=2)
    plain = train(tmp_path / "plain", max_epochs=2)
    weights = {
        kind: [value for phase, value in seen if phase == kind] for kind in ("train", "test")
    }
    assert torch.equal(weights["train"][-1], plain.run.model[0].weight)
    assert torch.equal(weights["test"][-1], hook.state.average["0.weight"])
    assert not torch.equal(weights["test"][-1], weights["train"][-1])


class ExactNorm(Quiet):
    """Recomputes batch norm from samples that it has kept, or from the data."""

    def __init__(self, samples, cached):
        super().__init__()
        self.samples, self.cached = samples, cached
        self.cache = []

    def on_phase_start(self, task):
        self.cache = []

    def on_step(self, task):
        if task.train:
            cpu = torch.device("cpu")
            self.cache.append(recursive_copy_to_device(task.last_batch.sample, True, device=cpu))

    def on_phase_end(self, task):
        if not task.train:
            return
        size = get_batchsize_per_replica(self.cache[0])
        if self.cached:
            batches = iter(self.cache)
        else:
            task.build_dataloaders_for_current_phase()
            task.create_data_iterators()
            batches = task.data_iterator
        update_bn_stats(task.base_model, (one["input"] for one in batches), self.samples // size)


@pytest.mark.parametrize("cached", [True, False])
def test_statistics_of_batch_norm_are_exact_at_the_end_of_a_phase(tmp_path, cached):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    make_classifier(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        hooks=[ExactNorm(12, cached)],
        run_dir=tmp_path / "run",
        **loaders(),
    ).train()
    inputs = Samples().inputs
    assert torch.allclose(model[0].running_mean, inputs.mean(0), atol=1e-6)
    assert torch.allclose(model[0].running_var, inputs.var(0, unbiased=False), atol=1e-6)


class Save(Quiet):
    """Writes a checkpoint of the task and a copy of it under another name."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def on_phase_end(self, task):
        if is_primary() and task.phase_type == "train" and not task.test_only:
            path = save_checkpoint(self.folder, get_checkpoint_dict(task, {"lr": 0.1}))
            PathManager.copy(path, f"{self.folder}/model_phase-{task.phase_idx}_end.torch")


def test_a_checkpoint_has_the_task(tmp_path):
    trainer = make_trainer(
        hooks=[Save(str(tmp_path)), KeepAverage(0.5)], max_epochs=2, run_dir=tmp_path / "run"
    )
    trainer.train()
    names = sorted(path.name for path in tmp_path.glob("*.torch"))
    assert names == ["checkpoint.torch", "model_phase-0_end.torch", "model_phase-1_end.torch"]
    state = torch.load(tmp_path / names[2], weights_only=True)["classy_state_dict"]
    assert (state["train"], state["phase_idx"], state["train_phase_idx"]) == (True, 1, 1)
    assert state["num_updates"] == 6 * 4 and len(state["losses"]) == 3
    weight = state["base_model"]["model"]["trunk"]["0.weight"]
    assert torch.equal(weight, trainer.run.model[0].weight)
    assert set(state["hooks"]["KeepAverage"]) == {"raw", "average"}
    assert state["optimizer"]["optim"]["param_groups"][0]["lr"] == 0.05


# --- VISSL --------------------------------------------------------------------------------------


class Contrast(Quiet):
    """Builds an encoder like the model, moves it, and gives its keys to the loss."""

    on_loss_and_meter = ClassyHook._noop
    on_backward = ClassyHook._noop
    on_update = ClassyHook._noop

    @torch.no_grad()
    def on_forward(self, task):
        if task.loss.moco_encoder is None:
            encoder = build_model(task.config["MODEL"], task.config["OPTIMIZER"])
            task.loss.moco_encoder = encoder.to(task.device)
        else:
            pairs = zip(
                task.base_model.parameters(), task.loss.moco_encoder.parameters(), strict=True
            )
            for new, own in pairs:
                own.data = own.data * 0.9 + new.data * 0.1
        task.loss.key = task.loss.moco_encoder(task.last_batch.sample["data_momentum"][0])[0]


def test_a_momentum_encoder_lives_in_the_loss(tmp_path):
    class Loss(TeacherLoss):
        teacher = "moco_encoder"

    loss, model = Loss(lambda loss, output: (output - loss.key + 1).square().sum()), Encoder()
    parts = {"loss": loss, "train_data": views("plain"), "val_data": None}
    train(tmp_path, Contrast(), model=model, max_epochs=1, **parts)
    assert "moco_encoder.trunk.weight" in loss.state_dict()
    assert not torch.equal(loss.moco_encoder.trunk.weight, model.trunk.weight)


class Metrics(Quiet):
    """Writes meters and checkpoints in VISSL's form."""

    on_forward = ClassyHook._noop

    def on_phase_end(self, task):
        line = {"iteration": task.iteration, "phase_idx": task.phase_idx}
        for meter in task.meters:
            for name, outputs in meter.value.items():
                for output, value in outputs.items():
                    line[f"{task.phase_type}/{meter.name}_{name}_Output_{output}"] = round(value, 5)
        save_file(line, f"{task.checkpoint_folder}/lines.json")
        number, frequency = task.train_phase_idx, task.config["CHECKPOINT"]["CHECKPOINT_FREQUENCY"]
        phases = task.num_train_phases
        if task.train and is_checkpoint_phase(number, frequency, number, phases, "phase"):
            is_last = number == phases - 1
            content = {"loss": task.loss.state_dict(), "state": task.get_classy_state()}
            backend = task.config["CHECKPOINT"]["BACKEND"]
            writer = CheckpointWriter(task.checkpoint_folder, is_last, "phase", number, backend)
            writer.save_consolidated_checkpoint(content)
        LogLossMetricsCheckpointHook.print_and_save_meters(task, number, task.meters)


def test_metrics_and_checkpoints_without_a_config_follow_vissls_defaults(tmp_path):
    folder = tmp_path / "run"
    trainer = make_classifier(hooks=[Metrics()], max_epochs=2, run_dir=folder)
    trainer.train()
    lines = [json.loads(line) for line in (folder / "lines.json").read_text().splitlines()]
    assert [line["phase_idx"] for line in lines] == [0, 1, 2, 3]
    accuracy = trainer.run.metrics.latest("val/accuracy")
    expected = pytest.approx(accuracy, abs=1e-5)
    assert lines[3]["test/accuracy_accuracy_Output_0"] == expected
    assert (folder / "checkpoint.torch").readlink().name == "model_final_checkpoint_phase1.torch"
    assert len((folder / "metrics.json").read_text().splitlines()) == 4


def test_a_hook_that_counts_for_itself_does_not_disturb_the_loops_count(tmp_path):
    class Count(Quiet):
        on_update = ClassyHook._noop

        def on_forward(self, task):
            task.batches += 1
            if task.train:
                task.iteration += 1

    trainer = train(tmp_path, Count(), max_epochs=1)
    assert trainer.run.progress.iter == 3
