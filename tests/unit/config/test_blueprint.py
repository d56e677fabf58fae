"""Every problem that is found without building anything, and its message."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hookloop.config.blueprint import Blueprint, draw
from hookloop.config.schema import KEYS
from hookloop.config.tree import Config
from hookloop.errors import ConfigError

Write = Callable[..., Config]

MODEL = "model: proj.Net\n"


def problems(config: Config) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        draw(config)
    return [str(problem) for problem in caught.value.problems]


def test_all_problems_are_reported_at_once_each_with_its_line(write: Write) -> None:
    config = write(
        "modle: proj.Net\n"
        "optimizer:\n"
        "  type: AdmaW\n"
        "  lr: 1e-3\n"
        "max_epochs: three\n"
        "hooks:\n"
        "  - StopAfter:\n"
        "      epoch: 3\n"
        "  - {type: proj.Watch, metric: val/loss, patience: many, priority: 300}\n"
        "  - proj.Watch\n"
        "  - StopAftr\n"
    )
    assert problems(config) == [
        "a.yaml: a config needs 'model'.",
        "a.yaml:1: modle: there is no such key. Did you mean 'model'?",
        "a.yaml:3: optimizer.type: no optimizer is named 'AdmaW'. Did you mean 'AdamW'?",
        "a.yaml:5: max_epochs: expected int | None, got 'three'.",
        "a.yaml:8: hooks[0].StopAfter.epoch: StopAfter has no argument 'epoch'. "
        "Did you mean 'epochs'?",
        "a.yaml:9: hooks[1].patience: expected int, got 'many'.",
        "a.yaml:9: hooks[1].priority: 300 is not a priority: it must lie between 0 and 100.",
        "a.yaml:10: hooks[2]: Watch needs 'metric'.",
        "a.yaml:11: hooks[3]: no hook is named 'StopAftr'. Did you mean 'StopAfter'?",
    ]


def test_problems_of_the_command_line_say_so(write: Write) -> None:
    config = write(MODEL, "optimzer.lr=1", "max_epochs=x")
    assert problems(config) == [
        "command line: optimzer.lr=1: optimzer: there is no such key. Did you mean 'optimizer'?",
        "command line: max_epochs=x: max_epochs: expected int | None, got 'x'.",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch_size: 3", "batch_size: there is no such key. Did you mean 'train_data.batch_size'"),
        ("learning_rate: 3", "learning_rate: there is no such key. Did you mean 'optimizer.lr'"),
        ("callbacks: []", "callbacks: there is no such key. Did you mean 'hooks'"),
        ("data: []", "The data to train on is 'train_data'"),
        ("data: {type: x}", "The data to train on is 'train_data'"),
        ("limit: {val: 3}", "limit: there is no such key. Write data.limit: it is in the group"),
        ("steps_per_epoch: 3", "no such key. Did you mean 'data.epoch_iters'"),
        ("setup: {matmull: high}", "setup has no argument 'matmull'. Did you mean 'matmul'"),
        ("val_every: {every: 3, strat: 2}", "val_every has no argument 'strat'"),
        ("logger: x", "logger: there is no such key. In Python, writers are hooks"),
        ("zebra: 3", "zebra: there is no such key. Write a value of your own as"),
        (
            "hooks: [EarlyStopping]",
            "no hook is named 'EarlyStopping'. Did you mean 'StopOnPlateau'",
        ),
        ("hooks: [{StopOnPlateau: {monitor: val/loss}}]", "Did you mean 'metric'"),
        (
            "optimizer: {type: SGD, learning_rate: 1}",
            "SGD has no argument 'learning_rate'. Did you",
        ),
        ("schedule: cosine", "no schedule is named 'cosine'. Did you mean 'CosineAnnealingLR'"),
        ("max_epochs: '3'", "expected int | None, got '3'. Write 3, without quotes."),
        ("hooks: {nope: null}", "hooks.nope: there is no 'nope' to remove."),
        (
            "hooks: {EmptyCache: }",
            "null removes a hook. For EmptyCache without arguments write {}.",
        ),
        ("hooks: [null]", "hooks[0]: there is nothing to remove."),
        ("metrics: {gone: null}", "metrics.gone: there is no 'gone' to remove."),
        ("hooks: {type: StopAfter}", "hooks: expected a list of hooks, or a mapping from names."),
        ("val_every: sometimes", "val_every: 'sometimes' is not an interval: write a number of"),
        ("accumulate: 0", "accumulate: must be at least 1, got 0."),
        ("precision: fp8", "precision: expected 'fp32' or 'bf16' or 'fp16', got 'fp8'."),
        ("seed: '3'", "seed: expected int | None, got '3'."),
        ("optimizer: {lr: 1}", "optimizer: a mapping that describes an object needs 'type'."),
        ("optimizer: {typ: SGD, lr: 1}", "needs 'type'. Did you mean 'typ'?"),
        ("optimizer: {type: SGD, lr: fast}", "optimizer.lr: expected float, got 'fast'."),
        ("optimizer: {type: SGD, lr: 1, groups: {a: 1}}", "optimizer.groups: expected a list of"),
        (
            "optimizer: {type: SGD, groups: [{lr: 1}]}",
            "optimizer.groups[0]: a group names its parameters: match: '*.bias', or norms: true.",
        ),
        (
            "optimizer: {type: SGD, groups: [{match: a, weight_decya: 1}]}",
            "SGD has no argument 'weight_decya'. Did you mean 'weight_decay'?",
        ),
        ("optimizer: proj.Net", "Net cannot be an optimizer here: it has to take 'params' or"),
        ("schedule: {type: OneCycleLR}", "schedule: OneCycleLR needs 'max_lr'."),
        (
            "schedule: {type: StepLR, step_size: auto}",
            "schedule.step_size: expected int, got 'auto",
        ),
        ("schedule: {type: ReduceLROnPlateau}", "needs 'metric', for example metric: val/loss."),
        (
            "schedule: {type: StepLR, step_size: 1, every: 3 min}",
            "schedule.every: a schedule steps by iterations or epochs, not by time.",
        ),
        ("schedule: {gen: {type: StepLR, step_size: 1}}", "schedule.gen: no optimizer is named"),
        (
            "train_data: {dataset: proj.Pairs, batch_size: 3}",
            "train_data: a mapping that describes",
        ),
        ("train_data: {type: proj.batches, cuont: 3}", "batches has no argument 'cuont'. Did you"),
        (
            "train_data: {type: DataLoader, dataset: {type: proj.Pairs, scale: big}}",
            "train_data.dataset.scale: expected float, got 'big'.",
        ),
        ("loss: {type: proj.make_loss, scael: 1}", "make_loss has no argument 'scael'."),
        ("loss: CrossEntropyLos", "no loss is named 'CrossEntropyLos'. Did you mean"),
        ("loss: proj.Wrapper", "loss: Wrapper needs 'inner'."),
        ("step: proj.stpe", "step: the module 'proj' has no 'stpe'. Did you mean 'step'?"),
        ("metrics: [proj.difference]", "metrics: expected a mapping from names to metrics"),
        ("metrics: {mae: 3}", "metrics.mae: expected a type or a mapping with 'type', got 3."),
        (
            "hooks: StopAfter",
            "expected a list of hooks, or a mapping from names. Write [StopAfter].",
        ),
        ("hooks: [{StopAfter: 3}]", "expected a mapping of arguments for StopAfter, got 3."),
        ("hooks: [{epochs: 3, name: x}]", "needs 'type'."),
        ("hooks: [{type: 3}]", "'type' is a name or a path such as package.module:Name, not 3."),
        (
            "hooks: [{type: proj.Plain, priority: hihg}]",
            "'hihg' is not a priority. Did you mean 'HIGH'",
        ),
        ("hooks: [{type: proj.Plain, every: often}]", "hooks[0].every: 'often' is not an interval"),
        ("hooks: [{type: proj.Plain, on_error: x}]", "expected 'raise' or 'disable', got 'x'."),
        ("hooks: [{type: proj.Plain, every_n: 3}]", "Plain has no argument 'every_n'."),
        ("hooks: {ema: {type: AdamW}}", "hooks.ema.type: no hook is named 'AdamW'."),
        (
            "hooks: [{proj.Calls: {function: 'proj:double'}}]",
            "got 'proj:double'. To pass a function, write {ref: proj:double}.",
        ),
        ("hooks: [{proj.Calls: {function: {ref: proj.duoble}}}]", "has no 'duoble'. Did you mean"),
        (
            "default_hooks: {consle: null}",
            "there is no 'consle' to remove. Did you mean 'console'?",
        ),
        ("default_hooks: {chekpoint: {keep: 3}}", "Did you mean 'checkpoint'?"),
        ("default_hooks: {checkpoint: {keeep: 3}}", "SaveCheckpoint has no argument 'keeep'."),
        ("default_hooks: [checkpoint]", "expected a mapping from names to hooks, or false"),
        ("imports: missing_module", "'missing_module' could not be imported: ModuleNotFoundError"),
        ("imports: 3", "imports: expected str | list[str], got 3."),
        (
            "setup: {load_from: {pth: a.pth, path: b}}",
            "Pretrained has no argument 'pth'. Did you mean 'path'",
        ),
        ("setup: {load_from: 3}", "setup.load_from: expected str | None, got 3."),
        ("setup: {points: [generated]}", "setup.points[0]: 'generated' cannot be a mount point"),
        (
            "setup: {points: [{name: after_x, argz: [a]}]}",
            "Point has no argument 'argz'. Did you mean 'arg",
        ),
    ],
)
def test_a_problem_is_worded_for_its_user(write: Write, text: str, message: str) -> None:
    found = problems(write(f"{MODEL}{text}\n"))
    assert len(found) == 1, found
    assert found[0].startswith("a.yaml:2: ")
    assert message in found[0]


def test_an_argument_left_over_from_a_base_is_explained(write: Write, project: Path) -> None:
    (project / "base.yaml").write_text("optimizer: {type: AdamW, lr: 1, betas: [0.9, 0.99]}\n")
    config = write(MODEL + "_base_: base.yaml\noptimizer:\n  type: SGD\n")
    (found,) = problems(config)
    assert found.startswith("base.yaml:1: optimizer.betas: SGD has no argument 'betas'.")
    assert found.endswith(
        "It was merged in from base.yaml: '_delete_: true' beside 'type' prevents that."
    )


def test_a_module_that_fails_is_the_cause_of_the_error(write: Write, project: Path) -> None:
    (project / "broken.py").write_text("x = 1\nraise RuntimeError('at import')\n")
    config = write("model: broken.Net\nimports: [broken]\n")
    with pytest.raises(ConfigError) as caught:
        draw(config)
    messages = [str(problem) for problem in caught.value.problems]
    assert "RuntimeError: at import" in messages[0]
    assert f"{project / 'broken.py'}:2" in messages[0]
    assert isinstance(caught.value.__cause__, ExceptionGroup)


def test_imports_take_effect_before_names_are_looked_up(write: Write, project: Path) -> None:
    (project / "registers.py").write_text(
        "from hookloop import HOOKS, Hook\n"
        "@HOOKS.register('blueprint_hook')\n"
        "class Registered(Hook): ...\n"
    )
    sys.modules.pop("registers", None)
    blueprint = draw(write(f"{MODEL}imports: [registers]\nhooks: [blueprint_hook]\n"))
    assert len(blueprint.hooks) == 1


def test_a_good_config_has_no_problems(write: Write) -> None:
    blueprint = draw(
        write(
            MODEL
            + "train_data: {type: DataLoader, dataset: {type: proj.Pairs}, batch_size: 4}\n"
            + "val_data: {one: proj.batches, two: {type: proj.batches, count: 2}}\n"
            + "loss: {type: proj:scaled, scale: 2}\n"
            + "metrics: {mae: proj.difference, mse: {type: MeanSquaredError}}\n"
            + "optimizer: {type: AdamW, lr: 1, betas: [0.9, 0.99]}\n"
            + "schedule: {type: OneCycleLR, max_lr: 1, total_steps: auto}\n"
            + "max_iters: 1e3\nvars: {anything: 3}\nname: test\nsetup: {points: [after_x]}\n"
        )
    )
    assert isinstance(blueprint, Blueprint)
    assert blueprint.settings["max_iters"] == 1000
    assert set(KEYS) > set(blueprint.settings)
