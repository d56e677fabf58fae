"""What a user is told who asks for a dialect whose distribution is not installed."""

import sys

import pytest
from tests.tiny import make_trainer

from hookloop import HOOKS, dialects
from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.config.locate import locate
from hookloop.errors import ConfigError, HookError
from hookloop.trainer import adapters

MMENGINE = r"pip install 'hookloop\[mmengine\]'"
CONFIG = """
model: {type: torch.nn.Linear, in_features: 4, out_features: 1}
train_data: {type: "tests.tiny:make_data"}
loss: mse_loss
optimizer: {type: SGD, lr: 0.1}
max_epochs: 1
"""


@pytest.fixture(autouse=True)
def engine_alone(monkeypatch):
    """No distribution of dialects is installed, and none has been used in this process."""
    finders = [one for one in sys.meta_path if not hasattr(one, "chosen_dialects")]
    monkeypatch.setattr(sys, "meta_path", finders)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mmengine", "vissl")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(adapters, "entry_points", lambda group: [])
    adapters.dialects.cache_clear()
    yield
    adapters.dialects.cache_clear()


@pytest.mark.parametrize("ask", [dialects.alias, dialects.graft])
def test_an_alias_and_a_graft_name_the_package(ask):
    with pytest.raises(HookError, match=MMENGINE):
        ask("mmengine")


@pytest.mark.parametrize(
    ("hook", "extra"),
    [
        ("EMAHook", "mmengine"),
        ("{type: SaveBest}", "dialects"),
        ("{type: mmengine.hooks.EMAHook}", "mmengine"),
        ("{type: CheckpointHook, dialect: vissl}", "dialects"),
    ],
)
def test_a_config_names_the_package_at_its_line(tmp_path, hook, extra):
    (tmp_path / "config.yaml").write_text(f"{CONFIG}hooks:\n  - {hook}\n")
    with pytest.raises(ConfigError, match=rf"hookloop\[{extra}\]") as caught:
        build(load(tmp_path / "config.yaml"), run_dir=tmp_path / "run")
    assert "config.yaml:8: " in str(caught.value)


def test_a_key_of_another_system_names_the_packages_that_bring_it(tmp_path):
    (tmp_path / "config.yaml").write_text(f"{CONFIG}custom_hooks:\n  - EMAHook\n")
    both = r"hookloop\[mmengine\].* or .*hookloop\[dialects\]"
    with pytest.raises(ConfigError, match=f"config.yaml:7: custom_hooks: .*{both}"):
        build(load(tmp_path / "config.yaml"), run_dir=tmp_path / "run")


def test_a_name_of_several_names_them_all():
    with pytest.raises(HookError, match=r"hookloop\[mmengine\].* or .*hookloop\[dialects\]"):
        HOOKS.get("ProfilerHook")


def test_a_script_that_imports_the_package_is_told_of_the_alias(tmp_path, monkeypatch):
    (tmp_path / "of_a_user.py").write_text("import classy_vision\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError) as caught:
        locate("of_a_user.Hook")
    assert "hookloop[dialects]', --alias vissl" in dialects.alias_hint(caught.value)


def test_a_foreign_hook_names_the_package():
    base = type("Callback", (), {"__module__": "lightning.pytorch.callbacks"})
    hook = type("Mine", (base,), {"__module__": "project"})()
    with pytest.raises(HookError, match=r"hookloop\[callbacks\]"):
        make_trainer(hooks=[hook])


def test_other_names_have_nothing_to_install():
    with pytest.raises(HookError, match="'zebra' is not a dialect"):
        dialects.alias("zebra")
    assert adapters.missing_dialect("zebra") == adapters.missing_dialect(hook="Zebra") == ""
