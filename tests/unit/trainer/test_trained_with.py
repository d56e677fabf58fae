import torch
from tests.tiny import make_trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Hook, Trainer
from hookloop.hooks import AverageWeights, Notify
from hookloop.runs.config_values import read_config
from hookloop.runs.differences import compare_runs
from hookloop.runs.layout import RunDir

INPUTS = torch.randn(16, 4)
DATA = TensorDataset(INPUTS, (INPUTS[:, 0] > 0).long())


def train(run_dir, *, weight_decay=0.01, dropout=0.1, batch=8, hooks=(), **how):
    model = torch.nn.Sequential(torch.nn.Dropout(dropout), torch.nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=weight_decay)
    Trainer(
        model,
        train_data=DataLoader(DATA, batch_size=batch, shuffle=True),
        loss=torch.nn.CrossEntropyLoss(label_smoothing=0.1),
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 2),
        max_epochs=1,
        default_hooks={"console": None},
        hooks=[AverageWeights(), *hooks],
        run_dir=run_dir,
        **how,
    ).train()
    return RunDir(run_dir)


def test_scripts_are_compared_by_what_they_trained_with(tmp_path):
    one = train(tmp_path / "one")
    other = train(tmp_path / "other", weight_decay=0.1, dropout=0.2, batch=4, clip_norm=1.0)
    found = compare_runs(one, other)["config"]
    assert found["optimizer.weight_decay"] == [0.01, 0.1]
    assert found["model.layers.0"][0].startswith("Dropout(p=0.1")
    assert found["train_data.batch_size"] == [8, 4]
    assert found["clip_norm"] == [None, 1.0]
    assert not {"optimizer.lr", "loss.label_smoothing", "schedule.step_size"} & found.keys()


def test_the_config_of_a_script_is_above_what_was_found(tmp_path):
    config = {"optimizer": {"lr": 5}, "note": "x"}
    values = read_config(train(tmp_path / "one", setup={"config": config}))
    assert values["optimizer.lr"] == 5
    assert values["note"] == "x"
    assert values["optimizer.weight_decay"] == 0.01
    assert values["hooks.average_weights.type"] == "AverageWeights"


def test_an_address_is_not_kept(tmp_path):
    class Silent(Notify):
        def after_run(self, run):
            pass

    run = train(tmp_path / "one", hooks=[Silent("https://example.org/secret")])
    assert "secret" not in run.described_file.read_text()


def test_a_run_without_hooks_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Linear(4, 2)
    Trainer(
        model,
        train_data=DataLoader(DATA),
        loss=torch.nn.CrossEntropyLoss(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_iters=1,
        default_hooks=False,
    ).train()
    assert not list(tmp_path.iterdir())


def test_a_lazy_module_has_no_parameters_to_count_yet(tmp_path):
    model = nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 1))
    trainer = make_trainer(model=model, run_dir=tmp_path, hooks=[Hook()])
    assert "with 9 parameters" in repr(trainer)
    trainer.train()
    assert "parameters: 9" in (tmp_path / "trained_with.yaml").read_text()
