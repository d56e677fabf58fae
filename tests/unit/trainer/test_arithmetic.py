"""``deterministic=`` and ``matmul=``: set while a run works, and put back afterwards."""

import os

import pytest
import torch
from tests.names import epoch_file
from tests.tiny import make_data, make_trainer

from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.engine.hook import Hook
from hookloop.errors import ModelError
from hookloop.hooks import SaveCheckpoint
from hookloop.trainer.arithmetic import WORKSPACE, Arithmetic


def settings():
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
        torch.get_float32_matmul_precision(),
        os.environ.get(WORKSPACE),
    )


class Look(Hook):
    def __init__(self):
        self.seen = []

    def after_forward(self, run):
        self.seen.append(settings())


class Fail(Hook):
    def after_backward(self, run):
        raise ValueError("stop here")


@pytest.fixture(autouse=True)
def plain_torch(monkeypatch):
    monkeypatch.delenv(WORKSPACE, raising=False)


@pytest.mark.parametrize("work", ["train", "validate", "test"])
def test_a_run_computes_as_told_and_leaves_nothing_behind(work):
    before, look = settings(), Look()
    data = {"val_data": make_data(4), "data.test": make_data(4)}
    trainer = make_trainer(hooks=[look], setup={"deterministic": True, "matmul": "medium"}, **data)
    assert settings() == before
    getattr(trainer, work)()
    assert set(look.seen) == {(True, False, True, False, "medium", ":4096:8")}
    assert settings() == before


def test_a_run_that_fails_leaves_nothing_behind_either():
    before = settings()
    with pytest.raises(ValueError, match="stop here"):
        make_trainer(hooks=[Fail()], setup={"deterministic": "warn", "matmul": "high"}).train()
    assert settings() == before


def test_what_the_user_has_set_is_kept(monkeypatch):
    monkeypatch.setenv(WORKSPACE, ":16:8")
    look = Look()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        make_trainer(hooks=[look]).train()
        make_trainer(hooks=[look], setup={"deterministic": True}).train()
        assert settings()[:2] == (True, True)
    finally:
        torch.use_deterministic_algorithms(False)
    assert {one[:2] for one in look.seen[:3]} == {(True, True)}
    assert {(one[:2], one[-1]) for one in look.seen[3:]} == {((True, False), ":16:8")}


def unrepeatable(run, batch):
    # torch has no implementation of it that repeats its bits.
    torch.empty(4).put_(torch.tensor([0, 0]), torch.ones(2))
    return run.model(batch[0]).mean()


def test_an_operation_without_a_deterministic_implementation_is_explained():
    trainer = make_trainer(step=unrepeatable, setup={"deterministic": True})
    with pytest.raises(RuntimeError, match="deterministic") as caught:
        trainer.train()
    assert any("deterministic=True of the run asks for this" in n for n in caught.value.__notes__)


@pytest.mark.filterwarnings("default:put_ does not have")
def test_with_warn_it_is_computed_and_reported(tmp_path):
    trainer = make_trainer(
        step=unrepeatable,
        setup={"deterministic": "warn"},
        run_dir=tmp_path,
        hooks=[Look()],
        max_iters=1,
    )
    assert trainer.train().status == "completed"
    assert "deterministic" in (tmp_path / "run.log").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setup.deterministic": "always"}, "write True, 'warn' or False"),
        ({"setup.matmul": "hihg"}, "Did you mean 'high'?"),
    ],
)
def test_other_values_are_rejected(options, message):
    with pytest.raises(ModelError) as caught:
        make_trainer(**options)
    assert message in str(caught.value)


def test_off_touches_nothing(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(torch, "use_deterministic_algorithms", fail)
    monkeypatch.setattr(torch, "set_float32_matmul_precision", fail)
    with Arithmetic().applied():
        pass


def test_it_is_recorded_and_compared_at_a_resume(tmp_path, caplog):
    save = {"run_dir": tmp_path, "hooks": [SaveCheckpoint("1 epoch")]}
    make_trainer(**save, setup={"deterministic": True}).train()
    saved = torch.load(tmp_path / epoch_file(1), weights_only=True)["arguments"]
    assert (saved["setup"]["deterministic"], saved["setup"]["matmul"]) == (True, None)
    make_trainer(run_dir=tmp_path, resume=True, max_epochs=2, setup={"matmul": "high"}).train()
    assert (
        "Resumed with other arguments: setup.deterministic: True -> False; "
        "setup.matmul: None -> 'high'" in caplog.text
    )


def test_a_config_has_both(tmp_path):
    (tmp_path / "config.yaml").write_text(
        "model: {type: torch.nn.Linear, in_features: 4, out_features: 1}\n"
        "default_hooks: false\nloss: mse_loss\nsetup: {deterministic: warn, matmul: high}\n"
    )
    assert (
        build(load(tmp_path / "config.yaml")).run._internals.arguments["setup"]["deterministic"]
        == "warn"
    )
