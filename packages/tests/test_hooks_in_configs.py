"""Hooks of other systems in a config: their names, their arguments, what they are given."""

import re
import sys

import pytest
from click.testing import CliRunner

from hookloop import Priority, hooks
from hookloop.cli.main import cli
from hookloop.config import namespaces
from hookloop.config.build import build
from hookloop.config.json_schema import make_schema
from hookloop.dialects import installed
from hookloop.errors import ConfigError, HookError
from hookloop.trainer.default_hooks import DEFAULT_HOOKS, default_hooks

BASE = """
model: {{type: proj.Net}}
train_data: {{type: proj.batches}}
val_data: {{type: proj.batches}}
loss: mse_loss
optimizer: {{type: SGD, lr: 0.01}}
max_epochs: 2
default_hooks: false
run_dir: {run}
hooks:
{hooks}
"""

OWN = """
from hookloop_dialects.emloop.hooks import SaveBest
from hookloop_dialects.imix import HookBase
from hookloop_mmengine.hooks import Hook


class SaveMine(SaveBest):
    def __init__(self, extra, **kwargs):
        super().__init__(**kwargs)
        self.extra = extra


class Early(HookBase):
    def before_train(self):
        self.trainer.log_buffer.put_scalar("begun", 1)


class Foreign(Hook):
    calls = 0

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.calls += 1


class ForeignShort(Hook):
    def after_train_iter(self, runner): ...
"""


@pytest.fixture
def make(tmp_path, write):
    def build_with(hooks):
        (tmp_path / "own_hooks.py").write_text(OWN)
        lines = "\n".join(f"  - {hook}" for hook in hooks)
        return build(write(BASE.format(run=tmp_path / "run", hooks=lines)))

    return build_with


def test_a_name_of_one_dialect_and_a_name_with_its_dialect(make, tmp_path):
    trainer = make([
        "ComputeStats: {variables: [loss], dialect: emloop}",
        "WriteCSV: {dialect: emloop}",
        "emloop_tensorflow.hooks.WriteTensorboard",
        "SaveBest",
        "CatchSigint",
        "TrainingTrace",
    ])  # fmt: skip
    assert trainer.train().status == "completed"
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"training.csv", "model_best.pth", "trace.yaml"} <= names


def test_a_hook_of_emloop_is_given_what_its_base_asks_for(make, tmp_path):
    trainer = make([
        "ComputeStats: {variables: [loss], dialect: emloop}",
        "own_hooks.SaveMine: {extra: 3}",
    ])  # fmt: skip
    trainer.train()
    assert (tmp_path / "run" / "model_best.pth").is_file()


def test_a_hook_of_imix_has_a_level(make):
    trainer = make(["{type: own_hooks.Early, level: 40}"])
    assert {row.priority for row in trainer.timetable()} == {70}


def test_other_hooks_have_none(make):
    with pytest.raises(ConfigError, match="'level'"):
        make(["{type: StopAfter, epochs: 1, level: 40}"])


def test_a_name_of_two_dialects_needs_its_dialect(make):
    with pytest.raises(ConfigError, match="choose one with dialect: "):
        make(["CheckpointHook"])


def test_default_hooks_of_the_mmengine_document_are_taken_as_they_are(write, tmp_path):
    text = BASE.format(run=tmp_path / "run", hooks="  - EmptyCacheHook").replace(
        "default_hooks: false",
        "default_hooks:\n"
        "  runtime_info: {type: RuntimeInfoHook}\n"
        "  timer: {type: IterTimerHook}\n"
        "  sampler_seed: {type: DistSamplerSeedHook}\n"
        "  logger: {type: LoggerHook}\n"
        "  param_scheduler: {type: ParamSchedulerHook}\n"
        "  checkpoint: {type: CheckpointHook, interval: 1}\n",
    )
    build(write(text)).train()
    assert {"epoch_1.pth", "epoch_2.pth"} <= {one.name for one in (tmp_path / "run").iterdir()}
    with pytest.raises(ConfigError, match="'ChekpointHook'"):
        build(write(text, "default_hooks.checkpoint.type=ChekpointHook"))


@pytest.mark.parametrize(
    ("hook", "hint"),
    [
        ("WriteCSV: {output_file: a.csv, variables: [loss]}", "The WriteCSV of emloop has it"),
        ("WriteCSV: {output_file: a.csv, nothing: 1}", r"Did you mean 'file'\?$"),
        ("StopAfter: {train_stream_name: a}", "add 'dialect: emloop'"),
    ],
)
def test_an_argument_that_another_system_has_names_that_system(make, hook, hint):
    with pytest.raises(ConfigError) as caught:
        make([hook])
    assert re.search(hint, str(caught.value), re.M), str(caught.value)


def test_a_section_of_one_system_decides(write, tmp_path):
    text = BASE.format(run=tmp_path / "run", hooks="  []").replace("hooks:\n  []", "custom_hooks:")
    trainer = build(write(f"{text}  - {{type: ProfilerHook}}\n"))
    (hook,) = trainer.run.hooks
    assert type(hook.foreign).__module__ == "hookloop_mmengine.hooks.profiler_hook"


def test_keys_of_another_system_add_to_ours(write, tmp_path):
    text = BASE.format(run=tmp_path / "run", hooks="  - {type: StopAfter, epochs: 1}")
    trainer = build(
        write(
            f"{text}custom_hooks:\n"
            "  - {type: proj.Plain, name: own}\n"
            "  - LogMemory\n"
            "custom_imports: {imports: [proj, json], allow_failed_imports: false}\n",
            "custom_hooks.own.priority=5",
            "custom_hooks.LogMemory=null",
        )
    )
    found = {hook.name: hook.priority for hook in trainer.run.hooks}
    assert found == {"own": 5, "stop_after": Priority.NORMAL}


def test_a_module_that_another_key_lists_is_reported_there(write, tmp_path):
    text = BASE.format(run=tmp_path / "run", hooks="  []").replace("hooks:\n  []", "hooks: []")
    with pytest.raises(ConfigError, match=r"custom_imports.imports\[0\].*no_such_module"):
        build(write(f"{text}custom_imports: {{imports: [no_such_module]}}\n"))


def test_the_schema_has_the_keys_of_the_installed_systems():
    properties = make_schema()["properties"]
    assert properties["custom_hooks"]["description"] == "Added to 'hooks'."
    assert properties["custom_imports"]["anyOf"][1]["properties"]["imports"]


def test_every_limits_a_foreign_hook_or_is_rejected(make):
    trainer = make(["{type: own_hooks.Foreign, name: say, every: 2 iters}"])
    trainer.train()
    (hook,) = trainer.run.hooks
    assert hook.foreign.calls == trainer.run.progress.iter // 2
    with pytest.raises(ConfigError, match="every = '1 epoch' limits nothing"):
        make(["{type: own_hooks.Foreign, every: 1 epoch}"])
    with pytest.raises(ConfigError, match="'every' cannot limit EMAHook: it has arguments of its"):
        make(["{type: EMAHook, dialect: mmengine, every: 2 epochs}"])


def test_a_wrong_signature_is_reported_with_its_line(make):
    with pytest.raises(ConfigError, match=r"a.yaml:\d+: .*after_train_iter has the signature"):
        make(["{type: own_hooks.ForeignShort}"])


def test_a_hook_of_one_dialect_is_found_by_its_plain_name():
    names = namespaces.hooks()
    catalogues = [set(dialect.catalogue()) for dialect in installed().values()]
    counts = {name: sum(name in names for names in catalogues) for name in set().union(*catalogues)}
    own = {name for name, count in counts.items() if count == 1} - set(hooks.__all__)
    shared = {name for name, count in counts.items() if count > 1} - set(hooks.__all__)
    assert "SyncBuffersHook" in own
    assert names["SyncBuffersHook"].__name__ == "SyncBuffersHook"  # type: ignore[attr-defined]
    for name in sorted(shared)[:3]:
        with pytest.raises(HookError, match=f"'{name}' is a hook of .* and of .*: choose one with"):
            names[name]


def test_a_dialects_name_for_a_default_hook_replaces_ours():
    from hookloop.trainer.adapters import dialects

    theirs = dialects()["mmengine"].default_hooks
    assert theirs
    for name, ours in theirs.items():
        names = [hook.name for hook in default_hooks({name: None})]
        assert names == [one for one in DEFAULT_HOOKS if one != ours]


def test_a_hook_of_a_dialect_says_so():
    output = CliRunner().invoke(cli, ["hooks", "EMAHook"]).output
    assert output.startswith("EMAHook(ema_type=")
    assert "dialect:   mmengine" in output


def test_a_foreign_package_is_imported_from_our_dialect(project):
    (project / "foreign.py").write_text(
        "from mmengine.hooks import Hook\nprint(Hook.__module__.split('.')[0])\n"
    )
    printed = CliRunner().invoke(cli, ["run", "--alias", "mmengine", "foreign.py"]).stdout
    assert printed == "hookloop_mmengine\n"
    assert CliRunner().invoke(cli, ["run", "--alias", "mmengin", "foreign.py"]).exit_code == 2
    assert "mmengine" not in sys.modules
