"""MMEngine's hooks on several processes: files by the first one, equal decisions."""

import json
from pathlib import Path

import pytest
import torch
from tests.ranks import each_rank, on_ranks
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hookloop import Trainer
from hookloop_mmengine import dist
from hookloop_mmengine.evaluator import BaseMetric
from hookloop_mmengine.hooks import EarlyStoppingHook, EMAHook, Hook
from hookloop_mmengine.model import BaseModel, is_model_wrapper
from hookloop_mmengine.runner import Runner

pytestmark = pytest.mark.slow


class Points(Dataset):
    def __init__(self, count=21):
        self.inputs = torch.randn(count, 3, generator=torch.Generator().manual_seed(4))

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return {"inputs": self.inputs[index], "targets": self.inputs[index].sum(0, True)}


class Net(BaseModel):
    def __init__(self, norm=False):
        super().__init__()
        self.norm = nn.BatchNorm1d(3) if norm else nn.Identity()
        self.linear = nn.Linear(3, 1)

    def forward(self, inputs, targets, mode="tensor"):
        output = self.linear(self.norm(inputs))
        if mode == "loss":
            return {"loss": (output - targets).pow(2).mean()}
        return list((output - targets).abs())


class Error(BaseMetric):
    def process(self, data_batch, data_samples):
        self.results += [float(one) for one in data_samples]

    def compute_metrics(self, results):
        return {"loss": sum(results) / len(results), "count": float(len(results))}


class Orders(Hook):
    """Writes down the samples of each epoch."""

    def __init__(self):
        self.epochs = []

    def before_train_epoch(self, runner):
        self.epochs.append([])

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.epochs[-1] += [round(float(one), 4) for one in data_batch["inputs"][:, 0]]


def loader(batch_size, shuffle):
    return {"batch_size": batch_size, "num_workers": 0, "dataset": Points(),
            "sampler": {"type": "DefaultSampler", "shuffle": shuffle},
            "collate_fn": {"type": "default_collate"}}  # fmt: skip


def make(directory, model=None, **options):
    torch.manual_seed(0)
    launcher = dist.infer_launcher()
    dist.init_dist(launcher)
    batch_size = 6 // dist.get_world_size()
    return Runner(**{
        "model": model or Net(),
        "work_dir": str(directory),
        "launcher": launcher,
        "train_dataloader": loader(batch_size, True),
        "train_cfg": {"by_epoch": True, "max_epochs": 4},
        "val_dataloader": loader(batch_size, False),
        "val_cfg": {},
        "val_evaluator": Error(),
        "test_dataloader": loader(batch_size, False),
        "test_cfg": {},
        "test_evaluator": Error(),
        "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.05, "momentum": 0.9}},
        "randomness": {"seed": 7},
        "log_level": "ERROR",
        **options,
    })  # fmt: skip


def state_of(model):
    return {name: one.detach().clone() for name, one in model.state_dict().items()}


def assert_close(one, other):
    assert one.keys() == other.keys()
    for name in other:
        torch.testing.assert_close(one[name], other[name], atol=1e-6, rtol=1e-6)


def files(directory, *endings):
    found = (path for path in Path(directory).rglob("*") if path.suffix in endings)
    return sorted(path.name.split("-")[0] for path in found)


CHECKPOINTS = {"checkpoint": {"type": "CheckpointHook", "interval": 2, "save_best": "loss",
                              "max_keep_ckpts": 1, "published_keys": ["state_dict"]}}  # fmt: skip


def test_checkpoints_are_written_once_and_continue_on_any_number_of_processes(tmp_path):
    def train(name, epochs, **options):
        cfg = {"train_cfg": {"by_epoch": True, "max_epochs": epochs}, **options}
        runner = make(tmp_path / name, default_hooks=CHECKPOINTS, **cfg)
        weights = state_of(runner.train())
        return weights, runner.iter, sorted(runner.message_hub.runtime_info)

    alone, _, _ = train("one", 4)
    ranks = on_ranks(train, 2, "two", 4)
    assert files(tmp_path / "two", ".pth") == files(tmp_path / "one", ".pth")
    assert "epoch_4.pth" in files(tmp_path / "two", ".pth")
    assert files(tmp_path / "two", ".py") == files(tmp_path / "one", ".py")
    saved = torch.load(tmp_path / "two" / "epoch_4.pth", weights_only=True)
    for weights, iterations, infos in ranks:
        assert_close(weights, alone)
        assert_close(weights, saved["state_dict"])
        assert (iterations, infos) == (16, ranks[0][2])
    on_ranks(train, 2, "cut", 2)
    for weights, iterations, _ in on_ranks(lambda: train("cut", 4, resume=True), 3):
        assert_close(weights, alone)
        assert iterations == 16
    on_ranks(train, 2, "shrunk", 2)
    weights, iterations, _ = train("shrunk", 4, resume=True)
    assert_close(weights, alone)


def test_gradients_that_wait_for_a_step_are_kept(tmp_path):
    def train(name, epochs, **options):
        # Steps of three losses in epochs of four: the first epoch ends between two steps.
        wrapper = {"optimizer": {"type": "SGD", "lr": 0.05}, "accumulative_counts": 3}
        cfg = {"train_cfg": {"by_epoch": True, "max_epochs": epochs}, "optim_wrapper": wrapper}
        return state_of(make(tmp_path / name, **cfg, **options).train())

    def stop_after_one(name):
        class Stop(Hook):
            def after_train_epoch(self, runner):
                runner.train_loop.stop_training = True

        return train(name, 4, custom_hooks=[Stop()])

    alone = train("one", 4)
    on_ranks(stop_after_one, 2, "two")
    for weights in on_ranks(lambda: train("two", 4, resume=True), 3):
        assert_close(weights, alone)


class Broken(Error):
    def compute_metrics(self, results):
        raise ZeroDivisionError("no results of this kind")


def test_a_metric_that_fails_on_the_first_process_ends_all(tmp_path):
    def train(name):
        make(tmp_path / name, val_evaluator=Broken()).train()

    first, *others = each_rank(train, 3, "broken", timeout=60)
    assert "ZeroDivisionError: no results of this kind" in first.error
    for other in others:
        assert other.code and "PeerFailed" in other.error


def test_weights_of_another_run_are_loaded(tmp_path):
    def train(name, load_from=None):
        return state_of(make(tmp_path / name, load_from=load_from).train())

    first = str(tmp_path / "a" / "epoch_4.pth")
    train("a")
    alone = train("b", first)
    for weights in on_ranks(train, 2, "c", first):
        assert_close(weights, alone)


def test_an_early_stop_ends_all_processes_in_the_same_iteration(tmp_path):
    stop = {"type": "EarlyStoppingHook", "monitor": "loss", "patience": 1, "min_delta": 0.5}

    def train(name):
        runner = make(tmp_path / name, custom_hooks=[dict(stop)],
                      train_cfg={"by_epoch": True, "max_epochs": 50})  # fmt: skip
        runner.train()
        return runner.iter, runner.run.outcome.status

    alone = train("one")
    assert alone[0] < 200 and alone[1] == "stopped"
    assert on_ranks(train, 3, "three") == [alone] * 3


class EMA(EMAHook):
    """Overrides a method, so that the hook acts by its own methods."""

    def _swap_ema_parameters(self):
        super()._swap_ema_parameters()


@pytest.mark.parametrize("kind", [EMAHook, EMA])
def test_averages_and_buffers_are_equal_everywhere(tmp_path, kind):
    def train(name):
        seen, ema = [], kind(momentum=0.2)

        class Look(Hook):
            priority = "VERY_LOW"

            def before_val_epoch(self, runner):
                seen.append(state_of(runner.run.model))

        hooks = [ema, {"type": "SyncBuffersHook"}, Look()]
        # Batch norm cannot be trained on the single sample that a rank gets of the last batch.
        data = {**loader(3, True), "drop_last": True}
        runner = make(tmp_path / name, Net(norm=True), custom_hooks=hooks, train_dataloader=data)
        return state_of(runner.train()), seen, dict(runner.raw_metrics)

    first, second = on_ranks(train, 2, "two")
    # Statistics of half batches differ from those of whole ones, but not from rank to rank.
    for one, other in zip([first[0], *first[1]], [second[0], *second[1]], strict=True):
        assert_close(one, other)
    assert first[2] == second[2]
    assert first[2]["count"] == 21.0
    assert not torch.equal(first[0]["linear.weight"], first[1][-1]["linear.weight"])
    saved = torch.load(tmp_path / "two" / "epoch_4.pth", weights_only=True)
    torch.testing.assert_close(saved["state_dict"]["linear.weight"], first[1][-1]["linear.weight"])


def test_the_average_is_that_of_one_process(tmp_path):
    def train(name):
        runner = make(tmp_path / name, custom_hooks=[EMAHook(momentum=0.2)])
        runner.train()
        return runner.raw_metrics

    alone = train("one")
    assert on_ranks(train, 2, "two") == [pytest.approx(alone, abs=1e-6)] * 2


def test_each_epoch_has_another_order_which_all_processes_share(tmp_path):
    def train(name):
        orders = Orders()
        make(tmp_path / name, custom_hooks=[orders]).train()
        return orders.epochs

    alone = train("one")
    ranks = on_ranks(train, 2, "two")
    for number, epoch in enumerate(alone):
        assert sorted(ranks[0][number] + ranks[1][number]) == sorted(epoch)
        assert len(ranks[0][number]) + len(ranks[1][number]) == 21
    assert ranks[0][0] != ranks[0][1]


def test_one_process_writes_the_log_with_the_numbers_of_all(tmp_path):
    def train(name):
        logger = {"logger": {"type": "LoggerHook", "interval": 1}}
        runner = make(tmp_path / name, default_hooks=logger, log_level="INFO")
        runner.train()
        runner.test()
        return runner.timestamp, runner.experiment_name

    def lines(name):
        (path,) = (tmp_path / name).rglob("scalars.json")
        return [json.loads(line) for line in path.read_text().splitlines()]

    train("one")
    named = on_ranks(train, 2, "two")
    assert named[0] == named[1]
    assert len(files(tmp_path / "two", ".log")) == len(files(tmp_path / "one", ".log")) + 1
    one, two = lines("one"), lines("two")
    assert len(one) == len(two)
    for wanted, found in zip(one, two, strict=True):
        for key in ("loss", "lr", "step", "epoch", "iter"):
            assert found.get(key) == pytest.approx(wanted.get(key), abs=1e-6)


class Ask(Hook):
    """Saves on the first process only, and stops on all of them."""

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if runner.iter == 4 and runner.rank == 0:
            runner.save_checkpoint(runner.work_dir, "asked.pth")
        if runner.iter == 6:
            runner.train_loop.stop_training = True


def test_requests_of_a_hook_are_obeyed_in_the_same_iteration(tmp_path):
    def train(name):
        cfg = {"by_epoch": False, "max_iters": 30, "val_interval": 50}
        runner = make(tmp_path / name, custom_hooks=[Ask()], train_cfg=cfg)
        runner.train()
        return runner.iter

    assert train("one") == 7
    assert on_ranks(train, 3, "three") == [7] * 3
    asked = [torch.load(tmp_path / name / "asked.pth", weights_only=True)
             for name in ("one", "three")]  # fmt: skip
    assert [one["progress"]["iter"] for one in asked] == [5, 5]
    assert_close(asked[1]["state_dict"], asked[0]["state_dict"])


def test_evaluations_without_a_training(tmp_path):
    def evaluate(name):
        runner = make(tmp_path / name)
        return runner.val(), runner.test()

    alone = evaluate("one")
    for validated, tested in on_ranks(evaluate, 3, "three"):
        assert validated == pytest.approx(alone[0], abs=1e-6)
        assert tested == pytest.approx(alone[1], abs=1e-6)
        assert tested["count"] == 21.0


class Look(Hook):
    """Looks at the model, and collects results, in a native Trainer."""

    def before_train(self, runner):
        self.found = is_model_wrapper(runner.model), type(runner.model.module).__name__
        assert runner.model.weight is runner.run.model.weight
        assert list(runner.model.state_dict()) == ["module.weight", "module.bias"]
        assert runner.model(torch.ones(1, 1)).shape == (1, 1)
        runner.model = runner.model
        assert type(runner.run.model).__name__ == "Linear"

    def before_val_epoch(self, runner):
        self.results = []

    def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.results += data_batch[0].flatten().tolist()

    def after_val_epoch(self, runner, metrics=None):
        self.collected = dist.collect_results(self.results, 11)


def test_a_native_trainer_shows_hooks_the_same(tmp_path):
    def train():
        torch.manual_seed(0)
        model, look = nn.Linear(1, 1), Look()
        values = torch.arange(11.0)[:, None]
        trainer = Trainer(
            model,
            train_data=DataLoader(TensorDataset(values, values), batch_size=4),
            val_data=DataLoader(TensorDataset(values, values), batch_size=4),
            loss=nn.functional.mse_loss,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.001),
            max_epochs=2,
            hooks=[look, EarlyStoppingHook("loss", patience=9)],
            run_dir=tmp_path / "run",
        )
        trainer.train()
        return look.found, look.collected

    first, second = on_ranks(train, 2)
    assert first == ((True, "Linear"), [float(number) for number in range(11)])
    assert second == ((True, "Linear"), None)
