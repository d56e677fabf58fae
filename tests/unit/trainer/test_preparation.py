"""``prepare=``: the model is changed in place, and its state keeps its keys."""

import copy

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer
from torch import nn

from hookloop import ActivationCheckpointing, Cast, ChannelsLast, Compile
from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.errors import ConfigError, ModelError
from hookloop.hooks import AverageWeights, SaveCheckpoint
from hookloop.trainer.preparation import Prepared, convert

# torch itself warns when what it compiles gets the output of another module.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()


class Images(nn.Module):
    """A small network with convolutions, dropout and buffers."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.layers = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.3))
        self.head = nn.Linear(4, 1)
        self.strides = []

    def forward(self, images):
        self.strides.append(images.is_contiguous(memory_format=torch.channels_last))
        return self.head(self.layers(images).mean((2, 3)))


def images(count=3):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, 4, 2, 6, 6, generator=generator)
    return [(one, one.mean((1, 2, 3))[:, None]) for one in inputs]


def train(prepare, epochs=1, **options):
    model = Images()
    parts = {
        "optimizer": torch.optim.AdamW(model.parameters(), lr=0.01),
        "train_data": images(),
        "seed": 3,
        "max_epochs": epochs,
        "clip_norm": 1.0,
    }
    trainer = make_trainer(model=model, setup={"prepare": prepare}, **(parts | options))
    trainer.train()
    return trainer


ALL = {
    "compile": Compile(backend="eager"),
    "compiled parts": Compile(backend="eager", parts="layers.*"),
    "checkpointing": ActivationCheckpointing("layers.*"),
    "channels": ChannelsLast(),
    "cast": Cast("bf16"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_it_trains_in_place_and_a_resume_repeats_the_bits(name, tmp_path):
    keys = list(Images().state_dict())
    whole = train([ALL[name]], epochs=2)
    assert list(whole.run.model.state_dict()) == keys
    train([ALL[name]], run_dir=tmp_path, hooks=[SaveCheckpoint("1 epoch")])
    resumed = train([ALL[name]], epochs=2, run_dir=tmp_path, resume=True)
    assert resumed.run.progress.iter == 6
    assert_same_bits(whole.run.model, resumed.run.model)
    moved = [not torch.equal(*pair) for pair in zip(  # The optimizer has held on to the parameters.
        Images().parameters(), (one.float() for one in whole.run.model.parameters()), strict=True
    )]  # fmt: skip
    assert all(moved)


def test_activations_that_are_computed_again_change_no_number():
    assert_same_bits(train(None).run.model, train([ALL["checkpointing"]]).run.model)


def test_only_the_outermost_module_that_matches_is_wrapped():
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2))
    calls = []
    model[0][0].register_forward_pre_hook(lambda *_: calls.append("inner"))
    prepared = Prepared.of(model, [ActivationCheckpointing(["0*"])])
    Prepared.of(model, [ActivationCheckpointing("0")])  # A second time changes nothing.
    copy.deepcopy(model)(torch.ones(1, 2)).sum().backward()
    assert calls == ["inner", "inner"]
    assert prepared.describe() == [{"type": "ActivationCheckpointing", "patterns": ("0*",)}]


def test_parts_are_compiled_one_by_one_with_the_same_numbers():
    plain, parts = train(()), train([Compile(backend="eager", parts=["layers.0", "head"])])
    assert_same_bits(plain.run.model, parts.run.model)
    model = Images()
    Prepared.of(model, [Compile(backend="eager", parts="layers.*")])
    compiled = {name for name, one in model.named_modules() if one._compiled_call_impl is not None}
    assert compiled == {"layers.0", "layers.1", "layers.2"}
    assert list(model.state_dict()) == list(Images().state_dict())
    with pytest.raises(ModelError, match="Compile.*'haed'.*'head'"):
        Prepared.of(Images(), [Compile(parts="haed")])
    with pytest.raises(ModelError, match="Compile: give at least one pattern"):
        Compile(parts=[])


def test_a_pattern_without_a_module_is_rejected_with_the_nearest():
    with pytest.raises(ModelError, match="'layer.0'.*'layers.0'"):
        Prepared.of(Images(), [ActivationCheckpointing("layer.0")])


def test_channels_last_converts_parameters_and_images():
    trainer = train([ChannelsLast()])
    weight = trainer.run.model.layers[0].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert all(trainer.run.model.strides)
    train([ChannelsLast()])  # Without the step, nothing is converted.
    assert not any(train(None).run.model.strides)


def test_a_cast_model_gives_float32_outputs():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Prepared.of(model, [Cast("bf16")])
    Prepared.of(model, [Cast("fp64")])
    Prepared.of(model, [Cast("bf16")])
    assert {one.dtype for one in model.parameters()} == {torch.bfloat16}
    assert optimizer.param_groups[0]["params"][0] is model[0].weight
    assert model(torch.ones(2, 4)).dtype == torch.float32
    assert len(model._forward_pre_hooks) == 1


def test_hooks_that_copy_the_model_work_with_a_prepared_one():
    trainer = train(
        [ChannelsLast(), Cast("bf16"), ActivationCheckpointing("layers")],
        hooks=[AverageWeights()],
        val_data=images(2),
    )
    assert trainer.run.outcome.status == "completed"


def test_what_is_not_plain_is_left_alone():
    class Output:
        value = torch.ones(1)

    output = Output()
    changed = convert({"a": [torch.ones(1), 3], "b": output}, lambda one: one + 1)
    assert changed == {"a": [torch.full((1,), 2.0), 3], "b": output}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setup.prepare": ChannelsLast()}, r"prepare= is a list: write \[ChannelsLast"),
        (
            {"setup.prepare": [ChannelsLast]},
            r"which is not a step of a preparation: write ChannelsLast\(\)",
        ),
        ({"setup.prepare": "channels_last"}, "it must be a list"),
        ({"setup.prepare": [Compile(), Compile()]}, "Compile twice"),
        ({"setup.prepare": [ALL["compile"]], "compile": True}, "leave one out"),
        ({"setup.prepare": [ALL["cast"]], "precision": "bf16"}, "leave one out"),
    ],
)
def test_what_cannot_work_is_rejected(options, message):
    with pytest.raises(ModelError, match=message):
        make_trainer(**options)


def test_an_unknown_dtype_is_rejected_with_the_nearest():
    with pytest.raises(ModelError, match="'bf16'"):
        Cast("bf1")


def test_it_is_recorded_and_compared_at_a_resume(tmp_path, caplog):
    make_trainer(
        setup={"prepare": [Cast("bf16")]}, run_dir=tmp_path, hooks=[SaveCheckpoint("1 epoch")]
    ).train()
    make_trainer(run_dir=tmp_path, resume=True, max_epochs=2).train()
    assert "prepare: [{'type': 'Cast', 'dtype': 'bf16'}] -> []" in caplog.text


CONFIG = """
model: {type: torch.nn.Linear, in_features: 4, out_features: 1}
setup: {prepare: [ChannelsLast, {type: Cast, dtype: bf16}]}
loss: mse_loss
optimizer: {type: SGD, lr: 0.1}
default_hooks: false
"""


def test_a_config_prepares_the_model_before_the_optimizer_is_built(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    trainer = build(load(tmp_path / "config.yaml"))
    (group,) = trainer.run.optimizers["default"].param_groups
    assert group["params"][0].dtype == torch.bfloat16
    assert [one["type"] for one in trainer.run._internals.arguments["setup"]["prepare"]] == [
        "ChannelsLast",
        "Cast",
    ]
    assert trainer.run.model(torch.ones(2, 4)).dtype == torch.float32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "setup: {prepare: ChannelsLast}",
            r"setup.prepare: expected a list of preparations. Write \[Channels",
        ),
        (
            "setup: {prepare: [ChannelLast]}",
            "no preparation is named 'ChannelLast'. Did you mean 'Channe",
        ),
        (
            "setup: {prepare: [{type: Cast, dtype: bf1}]}",
            r"yaml:3: setup.prepare.*Did you mean 'bf16'",
        ),
        (
            "setup: {prepare: [{type: ActivationCheckpointing, patterns: body}]}",
            "no module matches 'body'",
        ),
    ],
)
def test_a_wrong_config_is_rejected_with_its_line(tmp_path, text, message):
    wrong = CONFIG.replace("setup: {prepare: [ChannelsLast, {type: Cast, dtype: bf16}]}", text)
    (tmp_path / "config.yaml").write_text(wrong)
    with pytest.raises(ConfigError, match=message):
        build(load(tmp_path / "config.yaml"))


def test_a_step_that_is_off_adds_no_hook_to_the_model():
    model = make_model()
    make_trainer(model=model, train_data=make_data())
    assert not model._forward_pre_hooks
    assert not model._forward_hooks
