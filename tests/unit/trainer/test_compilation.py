"""``compile=``: what is captured, what stays as it was, and what is reported.

The backends "eager" and "aot_eager" capture graphs as every other does, and need no C++ compiler.
"""

import copy

import pytest
import torch
from tests.tiny import assert_same_bits, make_classifier, make_data, make_model, make_trainer
from torch import nn
from torch._dynamo.utils import counters

from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.errors import ModelError
from hookloop.hooks import (
    AugmentAtTest,
    AverageWeights,
    CountComplexity,
    RecomputeBatchNorm,
    SaveCheckpoint,
)

EAGER = {"backend": "eager"}


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()


def graphs_of(work):
    before = counters["stats"]["unique_graphs"]
    work()
    return counters["stats"]["unique_graphs"] - before


def reports(caplog):
    return [one.getMessage() for one in caplog.records if one.name == "hookloop"]


class Own(nn.Module):
    """A module with a method besides."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, inputs):
        return self.inner(inputs)

    def encode(self, inputs):
        return self.inner(inputs)


class Opaque(Own):
    @torch.compiler.disable
    def forward(self, inputs):
        return self.inner(inputs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "backend"),
    [
        (make_model, "eager"),
        (make_model, "aot_eager"),
        (lambda: nn.Linear(4, 1), "eager"),
        (lambda: Own(make_model()), "eager"),
    ],
    ids=["sequential", "with gradients", "linear", "own"],
)
def test_a_model_of_any_kind_is_compiled_and_trains_as_it_would(make, backend):
    torch.manual_seed(0)
    model = make()
    plain = copy.deepcopy(model)
    names = list(model.state_dict())
    trainer = make_trainer(model=model, val_data=make_data(8), compile={"backend": backend})
    assert graphs_of(trainer.train) == 2  # One to train with, one to evaluate with.
    assert list(model.state_dict()) == names
    expected = make_trainer(model=plain, val_data=make_data(8))
    expected.train()
    assert_same_bits(model, plain)
    assert trainer.run.metrics.latest("val/loss") == expected.run.metrics.latest("val/loss")


def test_true_takes_the_defaults_of_torch(monkeypatch):
    taken = []
    monkeypatch.setattr(torch, "compile", lambda function, **options: taken.append(options))
    make_trainer(compile=True)
    options = {"mode": "max-autotune", "dynamic": True, "fullgraph": True}
    make_trainer(compile=options)
    assert taken == [{}, options]


@pytest.mark.parametrize("off", [False, None])
def test_nothing_is_compiled_unless_it_is_wanted(off):
    assert graphs_of(make_trainer(compile=off).train) == 0


@pytest.mark.slow
def test_many_models_in_one_process_are_all_compiled():
    def train():
        make_trainer(model=make_model(), compile=EAGER, max_iters=1).train()

    assert [graphs_of(train) for _ in range(9)] == [1] * 9  # torch's limit is 8.


def test_a_config_sets_the_options(tmp_path):
    (tmp_path / "config.yaml").write_text(
        "model: {type: torch.nn.Linear, in_features: 4, out_features: 1}\n"
        "compile: {backend: eager, dynamic: true}\n"
        "default_hooks: false\n"
    )
    trainer = build(load(tmp_path / "config.yaml"), run_dir=tmp_path / "run")
    assert graphs_of(lambda: trainer.run.model(torch.ones(2, 4))) == 1


# --- what happens around the model ---------------------------------------------------------------


@pytest.mark.slow
def test_hooks_of_modules_that_come_and_go_are_called():
    model = make_model()
    make_trainer(model=model, compile=EAGER).train()
    seen = []
    inputs = torch.ones(2, 4)
    for part in (model, model[1]):
        handle = part.register_forward_hook(lambda module, *_: seen.append(type(module).__name__))
        model(inputs)
        handle.remove()
    model(inputs)
    assert seen == ["Sequential", "Tanh"]


def results(directory, *hooks, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = make_classifier(
        model=model,
        optimizer=optimizer,
        hooks=hooks,
        run_dir=directory,
        max_epochs=2,
        seed=1,
        **options,
    )
    outcome = trainer.train()
    return trainer, outcome.metrics | trainer.test()


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        AverageWeights,
        lambda: RecomputeBatchNorm(samples=12),
        CountComplexity,
        lambda: AugmentAtTest([torch.neg], phases=["val", "test"]),
    ],
    ids=["average", "batch norm", "complexity", "augment"],
)
def test_hooks_find_a_compiled_model_as_they_would_another(make, tmp_path):
    _, plain = results(tmp_path / "plain", make())
    _, compiled = results(tmp_path / "compiled", make(), compile=EAGER)
    assert compiled == pytest.approx(plain)


@pytest.mark.slow
def test_a_resume_of_a_compiled_model_is_exact_and_a_plain_one_continues_it(tmp_path):
    def options(compile):
        return {"compile": compile, "val_every": 1}

    whole, _ = results(tmp_path / "whole", SaveCheckpoint(every="1 iter"), **options(EAGER))
    for number, compile in enumerate([EAGER, False]):
        directory = tmp_path / f"cut_{number}"
        results(directory, SaveCheckpoint(every="1 iter"), max_iters=2, **options(EAGER))
        again, _ = results(
            directory, SaveCheckpoint(every="1 iter"), resume=True, **options(compile)
        )
        assert again.run.progress.iter == 6
        assert_same_bits(again.run.model, whole.run.model)


def test_a_copy_of_the_model_is_a_plain_model_of_its_own():
    model = make_model()
    make_trainer(model=model, compile=EAGER).train()
    other = copy.deepcopy(model)
    nn.init.zeros_(other[2].weight)
    nn.init.zeros_(other[2].bias)
    assert not other(torch.ones(1, 4)).any()
    assert model(torch.ones(1, 4)).any()


def test_a_step_may_call_other_methods(caplog):
    def step(run, batch):
        other = run.model.encode(batch[0])
        return (run.model(batch[0]) + other - batch[1]).square().mean()

    trainer = make_trainer(model=Own(make_model()), step=step, compile=EAGER)
    assert graphs_of(trainer.train) == 1
    assert not reports(caplog)


# --- what is reported --------------------------------------------------------------------------


def test_a_model_of_which_nothing_can_be_compiled_is_reported_once(caplog):
    make_trainer(model=Opaque(make_model()), compile=EAGER).train()
    (message,) = reports(caplog)
    assert "compile= has compiled nothing of Opaque" in message


def test_so_is_one_that_is_never_called(caplog):
    def step(run, batch):
        return (run.model.encode(batch[0]) - batch[1]).square().mean()

    make_trainer(model=Own(make_model()), step=step, compile=EAGER).train()
    (message,) = reports(caplog)
    assert "the model itself was never called" in message


def test_a_backend_that_fails_is_named():
    def backend(graph, inputs):
        raise RuntimeError("no compiler here")

    with pytest.raises(Exception, match="no compiler here") as caught:
        make_trainer(compile={"backend": backend}).train()
    assert any("compile=False" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("compile", "message"),
    [
        ({"mod": "default"}, "no option 'mod'. Did you mean 'mode'"),
        ({"mode": "fastest"}, "compile={'mode': 'fastest'}: .*fastest"),
        ({"backend": "inductr"}, "compile={'backend': 'inductr'}: "),
        ("max-autotune", "'mode': 'max-autotune'"),
    ],
)
def test_wrong_options_are_rejected(compile, message):
    with pytest.raises(ModelError, match=message):
        make_trainer(compile=compile)


def test_a_model_that_is_compiled_already_is_rejected():
    with pytest.raises(ModelError, match="torch.compile"):
        make_trainer(model=torch.compile(make_model(), backend="eager"), compile=EAGER)
