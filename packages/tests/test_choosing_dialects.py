"""Which system a hook was written for, and its names in a config."""

import sys
from pathlib import Path

import pytest
from tests.tiny import make_trainer

from hookloop import dialects
from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.config.registry import HOOKS
from hookloop.errors import ConfigError, HookError
from hookloop.trainer.adapters import dialect_of_class

CONFIG = """
model: {{type: torch.nn.Linear, in_features: 4, out_features: 1}}
train_data: {{type: "tests.tiny:make_data"}}
loss: mse_loss
optimizer: {{type: SGD, lr: 0.1}}
max_epochs: 4
{hooks}
"""


def trainer_of(tmp_path, hooks):
    (tmp_path / "config.yaml").write_text(CONFIG.format(hooks=hooks))
    return build(load(tmp_path / "config.yaml"), run_dir=tmp_path / "run")


def test_a_hook_is_known_by_the_name_and_module_of_its_base():
    base = type("Hook", (), {"__module__": "mmengine.hooks.hook"})
    assert dialects.dialect_of(type("Mine", (base,), {})()).name == "mmengine"
    other = type("Hook", (), {"__module__": "mmengine_like.hooks"})
    assert dialects.dialect_of(type("Mine", (other,), {})()) is None


def test_a_base_that_only_looks_like_mmengines_is_adapted_without_the_package():
    calls = []
    base = type("Hook", (), {"__module__": "mmengine.hooks.hook", "before_train": None})

    class Mine(base):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            calls.append((runner.iter, batch_idx))

    make_trainer(hooks=[Mine()], max_epochs=2).train()
    assert calls == [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]


def test_an_explicit_dialect_decides():
    class Plain:
        dialect = "mmengine"

        def before_train(self, runner):
            self.seen = runner.max_iters

    hook = Plain()
    make_trainer(hooks=[hook]).train()
    assert hook.seen == 3


def test_an_unknown_dialect_is_rejected():
    hook = type("Plain", (), {"dialect": "mmengne"})()
    with pytest.raises(HookError, match="'mmengine'"):
        make_trainer(hooks=[hook])


def test_a_path_into_a_package_that_is_not_installed_leads_to_ours(monkeypatch, tmp_path):
    ours = "hookloop_dialects.vissl.classy_vision.hooks.ClassyHook"
    assert dialects.stand_in("classy_vision.hooks.ClassyHook") == ours
    assert dialects.stand_in("my_project.hooks.MyHook") == "my_project.hooks.MyHook"
    assert dialects.stand_in("SaveBest") == "SaveBest"
    (tmp_path / "classy_vision").mkdir()
    (tmp_path / "classy_vision" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    installed = "classy_vision.hooks.ClassyHook"
    assert dialects.stand_in(installed) == installed


def test_a_registered_class_is_found_in_the_registry_of_any_dialect(monkeypatch):
    from hookloop_dialects.imix.engine.hooks.builder import HOOKS as imix
    from hookloop_dialects.pointrix.hook.base_hook import HOOK_REGISTRY as pointrix

    monkeypatch.setattr(imix, "_registered", {})
    monkeypatch.setattr(pointrix, "_registered", {})
    first = imix.register_module()(type("FirstOfThisTest", (), {}))
    second = pointrix.register()(type("SecondOfThisTest", (), {}))
    assert dialects.registered("FirstOfThisTest") is first
    assert dialects.registered("SecondOfThisTest") is second
    assert dialects.registered("ThirdOfThisTest") is None
    assert dialects.registered("CheckPointHook") is None  # A row of a catalogue, not registered.


def test_a_catalogued_name_resolves_when_one_dialect_has_it():
    assert HOOKS.get("EMAHook").__module__ == "hookloop_mmengine.hooks.ema_hook"


def test_a_name_of_several_dialects_needs_one():
    with pytest.raises(HookError, match=r"is a hook of .*mmengine.*dialect: "):
        HOOKS.get("CheckpointHook")


@pytest.mark.parametrize("chosen", ["mmengine", "vissl"])
def test_a_chosen_dialect_decides_names_of_several(chosen):
    with dialects.alias(chosen):
        assert dialects.chosen() == (chosen,)
        for name in ("CheckpointHook", "ProfilerHook"):
            assert dialect_of_class(HOOKS.get(name)).name == chosen
    assert dialects.chosen() == ()
    with dialects.alias("emloop"), pytest.raises(HookError, match="--alias mmengine"):
        HOOKS.get("ProfilerHook")  # emloop has no hook of this name.


@pytest.mark.parametrize(
    ("name", "section", "systems"),
    [
        ("ProfilerHook", "hooks", ["mmengine", "vissl"]),
        ("ProfilerHook", "custom_hooks", ["mmengine"]),
        ("CheckpointHook", "default_hooks", ["mmengine"]),
        ("CheckPointHook", "custom_hooks", ["imix"]),
        ("LRSchedulerHook", "", ["imix", "pointrix"]),
        ("SaveBest", "custom_hooks", ["emloop"]),
        ("Unknown", "custom_hooks", []),
    ],
)
def test_the_section_decides_names_of_several(name, section, systems):
    assert list(dialects.catalogued(name, section)) == systems


def test_the_chosen_dialect_comes_before_the_section():
    with dialects.alias("vissl"):
        assert list(dialects.catalogued("ProfilerHook", "custom_hooks")) == ["vissl"]


def test_a_missing_package_of_a_dialect_has_a_hint():
    missing = ModuleNotFoundError("No module named 'imix'", name="imix.engine")
    assert dialects.alias_hint(missing).startswith("--alias imix lets files import 'imix'")
    with dialects.alias("imix"):
        assert dialects.alias_hint(missing) == ""
    assert dialects.alias_hint(ModuleNotFoundError(name="numpi")) == ""
    assert dialects.alias_hint(ValueError()) == ""


@pytest.mark.parametrize("name", ["mmcv", "mmcv.runner"])  # Without MMCV, and with MMCV 2.
def test_a_module_of_mmcv_1_has_a_hint(name):
    missing = ModuleNotFoundError(name=name)
    for chosen in ((), ("mmengine",)):
        with dialects.alias(*chosen):
            assert "import Hook from mmengine.hooks" in dialects.alias_hint(missing)
    assert dialects.alias_hint(ModuleNotFoundError(name="mmcv.cnn")) == ""


def test_a_config_names_hooks_of_mmengine(tmp_path):
    hooks = """
default_hooks:
  console: null
  timer: {type: IterTimerHook}
  param_scheduler: {type: ParamSchedulerHook}
  checkpoint: {type: CheckpointHook, dialect: mmengine, interval: 2, max_keep_ckpts: 1}
custom_hooks:
  - {type: EMAHook, momentum: 0.1, priority: ABOVE_NORMAL}
"""
    trainer = trainer_of(tmp_path, hooks)
    trainer.train()
    names = [hook.name for hook in trainer.run.hooks]
    assert "timing" in names
    assert "schedule" in names
    assert sorted(path.name for path in (tmp_path / "run").glob("*.pth")) == ["epoch_4.pth"]


def test_a_wrong_argument_of_a_catalogued_hook_is_rejected(tmp_path):
    with pytest.raises(ConfigError, match="patience"):
        trainer_of(tmp_path, "hooks: [{type: EarlyStoppingHook, monitor: loss, patiance: 3}]")


def test_every_name_of_a_catalogue_is_there():
    for dialect in dialects.installed().values():
        for name, path in dialect.catalogue().items():
            assert HOOKS.get(path) is not None, name


HOOK_FILE = """
from pathlib import Path

from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class CountIterations(Hook):
    def __init__(self, interval=1):
        self.interval = interval

    def after_train(self, runner):
        Path("seen.txt").write_text(f"{runner.iter} {self.interval}")
"""


def test_a_hook_file_of_mmengine_is_named_in_a_config_of_the_command_line(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from hookloop.cli.main import cli

    monkeypatch.setattr("sys.path", [*sys.path, str(Path(__file__).parents[2])])
    (tmp_path / "foreign_hooks.py").write_text(HOOK_FILE)
    hooks = "imports: foreign_hooks\nhooks: [{type: CountIterations, interval: 5}]"
    (tmp_path / "config.yaml").write_text(CONFIG.format(hooks=hooks))
    for verb in ("check", "plan", "train"):
        result = CliRunner().invoke(cli, [verb, "--alias", "mmengine", "config.yaml"])
        assert result.exit_code == 0, result.output
    assert Path("seen.txt").read_text() == "12 5"
    result = CliRunner().invoke(cli, ["train", "--alias", "mmengin", "config.yaml"])
    assert result.exit_code == 2
    assert "Did you mean 'mmengine'?" in result.output


def test_the_parts_of_a_dialect_are_public_and_loaded_when_used():
    from hookloop.dialects import adapter

    assert dialects.Adapter is adapter.Adapter
    with pytest.raises(AttributeError, match="'Adaptor'"):
        dialects.Adaptor  # noqa: B018 - asking is the test
    assert set(dialects.__all__) == set(dir(dialects))
