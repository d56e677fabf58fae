"""What a config constructs: the arguments that the Trainer gets."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hookloop.config.build import arguments, build
from hookloop.config.tree import Config
from hookloop.data.random.states import seed_all
from hookloop.errors import ConfigError, ModelError
from hookloop.trainer.trainer import Trainer

Write = Callable[..., Config]

MODEL = "model: proj.Net\n"
SGD = "optimizer: {type: SGD, lr: 0.1}\n"


def built(config: Config, **options: Any) -> dict[str, Any]:
    return arguments(config, **options)


def problem(config: Config) -> str:
    with pytest.raises(ConfigError) as caught:
        arguments(config)
    return str(caught.value)


def names_in(model: torch.nn.Module, group: dict[str, Any]) -> list[str]:
    chosen = {id(parameter) for parameter in group["params"]}
    return [name for name, parameter in model.named_parameters() if id(parameter) in chosen]


def test_objects_are_built_recursively(write: Write) -> None:
    given = built(
        write(
            "model: {type: proj.Wrapper, inner: {type: torch.nn.Sequential, args: ["
            "{type: torch.nn.Linear, in_features: 2, out_features: 3}, "
            "{type: torch.nn.ReLU}]}}\n"
            "train_data:\n"
            "  type: DataLoader\n"
            "  dataset: {type: proj.Pairs, count: 6}\n"
            "  batch_size: 4\n"
            "  collate_fn: {ref: torch.utils.data:default_collate}\n"
        )
    )
    assert [type(layer).__name__ for layer in given["model"].inner] == ["Linear", "ReLU"]
    assert len(given["train_data"].dataset) == 6
    assert given["train_data"].collate_fn is torch.utils.data.default_collate


def test_a_parameter_that_asks_for_a_mapping_gets_it_as_it_is(write: Write) -> None:
    given = built(
        write("model: {type: proj.Wrapper, inner: {type: proj.Net}, options: {type: x, a: 1}}\n")
    )
    assert given["model"].options == {"type": "x", "a": 1}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("proj.difference", 2.0),
        ("'proj:difference'", 2.0),
        ("L1Loss", 2.0),
        ("l1_loss", 2.0),
        ("{type: L1Loss, reduction: sum}", 4.0),
        ("{type: l1_loss, reduction: sum}", 4.0),
        ("{type: proj.scaled, scale: 3}", 6.0),
        ("{type: proj.make_loss, scale: 3}", 6.0),
    ],
)
def test_a_loss_is_a_class_a_function_or_what_a_factory_returns(
    write: Write, text: str, result: float
) -> None:
    loss = built(write(f"{MODEL}loss: {text}\n"))["loss"]
    assert float(loss(torch.tensor([1.0, 3.0]), torch.tensor([3.0, 5.0]))) == result


def test_steps_and_metrics_are_functions_by_name(write: Write) -> None:
    given = built(
        write(
            f"{MODEL}step: {{one: proj.step, two: 'proj:step'}}\n"
            "metrics: {mae: proj.difference, mse: MeanSquaredError, gone: proj.difference}\n",
            "metrics.gone=null",
        )
    )
    assert given["step"]["one"] is given["step"]["two"]
    assert type(given["metrics"]["mse"]).__name__ == "MeanSquaredError"
    assert set(given["metrics"]) == {"mae", "mse"}
    assert callable(built(write(f"{MODEL}step: proj.step\n"))["step"])


@pytest.mark.parametrize(
    ("run", "every", "steps"),
    [
        ("max_epochs: 3", "1", 12),
        ("max_iters: 7", "1", 7),
        ("max_epochs: 3\nmax_iters: 5", "1", 5),
        ("max_epochs: 3\naccumulate: 3", "1", 6),
        ("max_epochs: 3\ndata: {epoch_iters: 10}", "1", 30),
        ("max_epochs: 3\ndata: {limit: {train: 2}}", "1", 6),
        ("max_epochs: 3\ndata: {overfit: 1}", "1", 3),
        ("max_epochs: 3", "1 epoch", 3),
        ("max_epochs: 6", "2 epochs", 3),
        ("max_epochs: 3", "4 iters", 3),
        ("max_epochs: 3\naccumulate: {0: 1, 1 epoch: 4}", "1", 6),
        ("max_epochs: 3\naccumulate: {0: 1, 1 epoch: 4}", "1 epoch", 3),
        ("max_epochs: 9\nmax_iters: 6\naccumulate: {0: 1, 1 epoch: 4}", "1 epoch", 3),
        ("max_iters: 6\naccumulate: {0: 1, 4: 2}", "1 epoch", 2),
        ("max_epochs: 3\naccumulate: {0: 1, 2: 3}", "1", 7),
        ("max_epochs: 3\naccumulate: auto", "1", 12),
    ],
)
def test_the_length_of_a_schedule_can_follow_from_the_run(
    write: Write, run: str, every: str, steps: int
) -> None:
    given = built(
        write(
            f"{MODEL}{SGD}{run}\ntrain_data: {{type: proj.batches, count: 4}}\n"
            f"schedule: {{type: CosineAnnealingLR, T_max: auto, every: {every}}}\n"
        )
    )
    assert given["schedule"].scheduler.T_max == steps


def test_a_length_that_nobody_knows_is_rejected(write: Write, project: Path) -> None:
    (project / "stream.py").write_text("def stream():\n    yield 1\n")
    config = write(
        f"{MODEL}{SGD}train_data: stream.stream\nmax_epochs: 1\n"
        "schedule: {type: CosineAnnealingLR, T_max: auto}\n"
    )
    assert "a.yaml:5: schedule.T_max: the length of the run is not known" in problem(config)


def test_epochs_of_changing_length_have_no_number_of_steps(write: Write) -> None:
    config = write(
        f"{MODEL}{SGD}train_data: {{type: proj.batches, count: 4}}\nmax_epochs: 2\n"
        "accumulate: {0: 1, 1 epoch: 2}\n"
        "schedule: {type: OneCycleLR, max_lr: 1, epochs: auto, steps_per_epoch: auto}\n"
    )
    assert "schedule.steps_per_epoch: the length of the run is not known" in problem(config)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0", "accumulate: must be at least 1"),
        ("often", "accumulate: expected int | 'auto'"),
    ],
)
def test_a_number_of_microbatches_that_is_none_is_reported(
    write: Write, value: str, message: str
) -> None:
    assert message in problem(write(f"{MODEL}accumulate: {value}\n"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{0: 1, 3: 2, 1 epoch: 3}", "write all in one unit"),
        ("{0: many}", "'many' at 0: it must be a whole number"),
    ],
)
def test_moments_that_cannot_be_meant_show_the_line(write: Write, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"a.yaml:2: .*{message}"):
        build(write(f"{MODEL}accumulate: {value}\n"))


def test_tokens_are_counted_by_a_function_that_is_named(write: Write) -> None:
    assert (
        built(write(f"{MODEL}data: {{count_tokens: builtins.len}}\n"))["data"].count_tokens is len
    )


def test_schedules_made_of_schedules_drive_one_optimizer(write: Write) -> None:
    given = built(
        write(
            f"{MODEL}{SGD}max_iters: 10\nschedule:\n"
            "  type: SequentialLR\n"
            "  schedulers:\n"
            "    - {type: LinearLR, start_factor: 0.1, total_iters: 3}\n"
            "    - {type: CosineAnnealingLR, T_max: auto}\n"
            "  milestones: [3]\n"
        )
    )
    scheduler = given["schedule"].scheduler
    assert scheduler._schedulers[1].T_max == 10
    assert scheduler.optimizer is given["optimizer"]


def test_hooks_can_be_written_in_every_way(write: Write) -> None:
    hooks = built(
        write(
            MODEL + "hooks:\n"
            "  - proj.Plain\n"
            "  - StopAfter: {epochs: 100}\n"
            "  - proj.Watch: {metric: val/loss, patience: 10}\n"
            "  - {type: 'proj:Plain', name: second, priority: low, every: 50, on_error: disable}\n"
            "  - LogMemory\n"
            "  - {type: proj.Plain, priority: 5, name: third}\n",
            "hooks.LogMemory=null",
        )
    )["hooks"]
    assert [hook.name for hook in hooks] == ["plain", "stop_after", "watch", "second", "third"]
    assert hooks[1].epochs == 100
    assert hooks[2].patience == 10
    assert (hooks[3].priority, hooks[3].every, hooks[3].on_error) == ("low", 50, "disable")
    assert hooks[4].priority == 5


def test_named_hooks_take_their_names_from_the_mapping(write: Write) -> None:
    config = write(
        MODEL + "hooks:\n"
        "  early: {type: proj.Watch, metric: val/loss}\n"
        "  plain: proj.Plain\n"
        "  StopAfter: {epochs: 3}\n"
        "  gone: proj.Plain\n",
        "hooks.early.patience=7",
        "hooks.gone=null",
    )
    hooks = built(config)["hooks"]
    assert [hook.name for hook in hooks] == ["early", "plain", "stop_after"]
    assert hooks[0].patience == 7


def test_settings_that_are_parameters_go_to_the_constructor(write: Write) -> None:
    given = built(write(MODEL + "hooks: [{type: proj.Own, every: 5 iters, priority: 3}]\n"))
    assert (given["hooks"][0].given, given["hooks"][0].priority) == ("5 iters", 3)


def test_default_hooks_are_changed_removed_and_replaced(write: Write) -> None:
    given = built(
        write(
            MODEL + "default_hooks:\n"
            "  console: null\n"
            "  checkpoint: {last: false, priority: 95}\n"
            "  timing: {type: proj.Plain}\n"
        )
    )
    changes = given["default_hooks"]
    assert changes["console"] is None
    assert changes["checkpoint"].last is False
    assert changes["checkpoint"].priority == 95
    assert type(changes["timing"]).__name__ == "Plain"
    assert built(write(f"{MODEL}default_hooks: false\n"))["default_hooks"] is False


def test_a_hook_that_asks_for_model_dataset_or_directory_gets_them(
    write: Write, project: Path
) -> None:
    data = "train_data: {type: DataLoader, dataset: {type: proj.Pairs}}\n"
    given = built(write(f"{MODEL}{data}hooks: [proj.Nosy]\n"))
    (hook,) = given["hooks"]
    assert hook.model is given["model"]
    assert hook.dataset is given["train_data"].dataset
    assert Path(hook.output_dir).is_dir()
    assert str(given["run_dir"]) == hook.output_dir

    given = built(
        write(f"{MODEL}train_data: proj.batches\nhooks: [proj.Nosy: {{output_dir: here}}]\n")
    )
    assert given["hooks"][0].dataset is given["train_data"]
    assert given["hooks"][0].output_dir == "here"
    assert "run_dir" not in given


def test_no_directory_is_made_when_nobody_asks(write: Write, project: Path) -> None:
    built(write(f"{MODEL}hooks: [proj.Plain]\n"))
    assert not (project / "runs").exists()


def test_a_constructor_that_fails_keeps_its_traceback_and_names_the_part(write: Write) -> None:
    config = write(f"{MODEL}hooks:\n  - proj.Plain\n  - proj.Picky: {{value: 3}}\n")
    with pytest.raises(RuntimeError, match="no such value") as caught:
        arguments(config)
    assert caught.value.__notes__ == ["while building hooks[1] (Picky), a.yaml:4"]
    assert caught.traceback[-1].path.name == "proj.py"


def test_values_that_constructors_reject_are_reported_together(write: Write) -> None:
    config = write(
        f"{MODEL}hooks:\n  - StopAfter: {{epochs: 0}}\n  - StopAfter\n"
        "default_hooks: {checkpoint: {keep: 0}}\n"
    )
    first, second, third = problem(config).splitlines()
    assert first == "a.yaml:3: hooks[0]: StopAfter: epochs must be positive, not 0."
    assert second.startswith("a.yaml:4: hooks[1]: StopAfter needs a limit")
    assert third.startswith("a.yaml:5: default_hooks.checkpoint: SaveCheckpoint: keep must be")


def test_two_hooks_of_one_name_are_rejected_with_the_second_ones_line(write: Write) -> None:
    config = write(f"{MODEL}hooks:\n  - proj.Plain\n  - StopAfter: {{epochs: 1}}\n  - proj:Plain\n")
    assert problem(config) == (
        "a.yaml:5: hooks[2]: another hook is named 'plain', too: give this one a name of its own, "
        "{type: Plain, name: plain_2, ...}."
    )


def test_a_python_config_may_hold_classes_functions_and_objects(write: Write) -> None:
    given = built(
        write(
            "import torch\n"
            "from hookloop.hooks import StopAfter\n"
            "from proj import Net, Plain, batches, difference as _difference\n"
            "model = dict(type=Net, width=3)\n"
            "train_data = batches(2)\n"
            "loss = _difference\n"
            "_other = dict(type='proj.Plain', name='other', priority='VERY_LOW')\n"
            "hooks = [Plain, StopAfter(epochs=2), _other]\n",
            name="python_objects.py",
        )
    )
    assert given["model"].body.out_features == 3
    assert len(given["train_data"]) == 2
    assert given["loss"].__name__ == "difference"
    assert [hook.name for hook in given["hooks"]] == ["plain", "stop_after", "other"]


def test_building_draws_the_random_numbers_of_a_script(write: Write) -> None:
    given = built(
        write(
            f"seed: 7\n{MODEL}val_data: proj.batches\n"
            "train_data: {type: DataLoader, dataset: {type: proj.Pairs}}\n"
        )
    )
    import proj  # type: ignore[import-not-found]

    seed_all(7)
    model, pairs, val_data = proj.Net(), proj.Pairs(), proj.batches()
    assert torch.equal(given["model"].head.weight, model.head.weight)
    assert torch.equal(given["train_data"].dataset.inputs, pairs.inputs)
    assert torch.equal(given["val_data"][0][0], val_data[0][0])


def test_a_config_trains_to_the_same_bits_as_a_script(write: Write, project: Path) -> None:
    trainer = build(
        write(
            f"seed: 7\n{MODEL}loss: mse_loss\nmax_epochs: 2\naccumulate: 2\n"
            "train_data: {type: DataLoader, dataset: {type: proj.Pairs}, shuffle: true}\n"
            "optimizer: {type: AdamW, lr: 0.01}\n"
            "schedule: {type: OneCycleLR, max_lr: 0.01, total_steps: auto}\n"
            "default_hooks: {console: null}\n"
        )
    )
    trainer.train()

    import proj
    from torch.optim import AdamW
    from torch.optim.lr_scheduler import OneCycleLR

    seed_all(7)
    model = proj.Net()
    data = torch.utils.data.DataLoader(proj.Pairs(), shuffle=True)
    optimizer = AdamW(model.parameters(), lr=0.01)
    Trainer(
        model,
        train_data=data,
        loss=torch.nn.functional.mse_loss,
        optimizer=optimizer,
        schedule=OneCycleLR(optimizer, max_lr=0.01, total_steps=8),
        max_epochs=2,
        accumulate=2,
        seed=7,
        default_hooks={"console": None},
    ).train()
    for ours, theirs in zip(trainer.run.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_weights_to_begin_with_are_a_path_or_a_description(write: Write) -> None:
    assert built(write(f"{MODEL}setup: {{load_from: a.pth}}\n"))["setup"].load_from == "a.pth"
    given = built(write(f"{MODEL}setup: {{load_from: {{path: a.pth, partial: true}}}}\n"))[
        "setup"
    ].load_from
    assert (given.path, given.partial) == ("a.pth", True)


def test_settings_of_the_call_win_over_the_config(write: Write) -> None:
    config = write(f"{MODEL}run_dir: a\nname: digits run\n")
    assert built(config)["run_dir"] == "a"
    assert built(config, run_dir="b", resume=True)["run_dir"] == "b"
    assert built(config, run_dir="b", resume=True)["resume"] is True
    named = built(write(f"{MODEL}name: digits/run 1\n"))
    assert str(named["run_dir"]) == "runs/{time}_digits-run-1"


def test_the_trainer_trains(write: Write, project: Path) -> None:
    trainer = build(
        write(
            f"{MODEL}{SGD}train_data: proj.batches\nval_data: proj.batches\nloss: mse_loss\n"
            "metrics: {mae: proj.difference}\nmax_epochs: 2\nseed: 1\nname: small\n"
            "default_hooks: {console: null}\nhooks: [proj.Nosy]\n"
        )
    )
    assert isinstance(trainer, Trainer)
    outcome = trainer.train()
    assert outcome.status == "completed"
    assert "val/mae" in outcome.metrics
    (directory,) = (project / "runs").iterdir()
    assert directory.name.endswith("_small")
    assert (directory / "config.yaml").is_file()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("train_data={type: proj.batches, count: 0}", "train_data is empty: it has no batch."),
        ("model=proj.batches", "model= is list: it must be a torch.nn.Module."),
        ("clip_norm=-1", "clip_norm must be above 0, not -1.0: None does not clip."),
        ("device=gpu", "device='gpu' is not a device of torch"),
        ("optimizer={type: SGD, lr: -1}", "optimizer: Invalid learning rate: -1.0"),
        ("hooks=[{Plain: null, every: 3}]", "hooks[0]: indent every further than Plain, as its"),
    ],
)
def test_what_is_rejected_while_building_is_reported_with_its_line(
    write: Write, changed: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(write(f"{MODEL}{SGD}train_data: proj.batches\nloss: mse_loss\n", changed))
    assert str(caught.value).startswith(f"command line: {changed}: {message}")


ODD = """
import torch

from hookloop import Trainer
from hookloop.errors import DataError, ModelError


class Odd(torch.nn.Linear):
    def __init__(self) -> None:
        super().__init__(2, 1)

    def to(self, device):
        raise ModelError("(?!) clip_norm: 100 % odd.", argument="model")


class Stream:
    def __iter__(self):
        yield 1

    def __len__(self):
        raise DataError("[loss]: odd, too.")
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # The first word of a message is not what decides.
        ("model: odd.Odd\n", "a.yaml:1: (?!) clip_norm: 100 % odd."),
        (f"{MODEL}train_data: odd.Stream\n", "a.yaml:2: [loss]: odd, too."),
        (
            f"{MODEL}val_data:\n  clean: proj.batches\n  noisy: {{type: proj.batches, count: 0}}\n",
            "a.yaml:2: val_data['noisy'] is empty",
        ),
        (f"{MODEL}\nresume: true\n", "a.yaml:3: resume=True needs run_dir="),
        (f"{MODEL}run_dir: none\nresume: true\n", "a.yaml:2: run_dir: 'none' does not exist"),
        (f"{MODEL}setup: {{load_from: none.pth}}\n", "a.yaml:2: load_from: there is no checkpoint"),
        (f"{MODEL}loss: mse_loss\nstep: proj.step\n", "a.yaml:2: loss= and step= are both given"),
        (f"{MODEL}{SGD}step: {{critic: proj.step}}\n", "a.yaml:3: step= names critic"),
        (f"{MODEL}compile: {{zebra: 1}}\n", "a.yaml:2: compile= has no option 'zebra'"),
    ],
)
def test_the_line_of_an_error_is_that_of_its_argument(
    write: Write, project: Path, text: str, message: str
) -> None:
    (project / "odd.py").write_text(ODD)
    with pytest.raises(ConfigError) as caught:
        build(write(text))
    assert str(caught.value).startswith(message)


def test_an_error_without_an_argument_keeps_its_type(write: Write, project: Path) -> None:
    (project / "odd.py").write_text(ODD.replace(', argument="model"', ""))
    with pytest.raises(ModelError) as caught:
        build(write("model: odd.Odd\nclip_norm: 1\n"))
    assert not isinstance(caught.value, ConfigError)


def test_an_argument_that_the_config_does_not_have_has_no_line(write: Write, project: Path) -> None:
    (project / "odd.py").write_text(ODD.replace('argument="model"', 'argument="seed"'))
    with pytest.raises(ModelError) as caught:
        build(write("model: odd.Odd\n"))
    assert caught.value.argument == "seed"


def test_an_unknown_phase_of_a_limit_is_rejected_with_its_line(write: Write) -> None:
    config = write(
        f"{MODEL}{SGD}data: {{limit: {{trian: 3}}}}\nmax_epochs: 1\ntrain_data: proj.batches\n"
    )
    with pytest.raises(ConfigError, match="'trian'.*'train'"):
        build(config)


def test_a_writer_of_a_config_is_closed_and_opened_again_for_a_test(
    write: Write, project: Path
) -> None:
    (project / "keeping.py").write_text(
        "from hookloop.writers import Writer\n"
        "made = []\n"
        "class Keeping(Writer):\n"
        "    def __init__(self):\n"
        "        self.is_open, self.count = True, 0\n"
        "        made.append(self)\n"
        "    def write(self, records):\n"
        "        assert self.is_open\n"
        "        self.count += len(list(records))\n"
        "    def close(self):\n"
        "        self.is_open = False\n"
    )
    data = "{type: proj.batches, count: 4}"
    config = write(
        f"{MODEL}{SGD}loss: mse_loss\ntrain_data: {data}\ndata: {{test: {data}}}\nmax_epochs: 1\n"
        "default_hooks: false\nhooks:\n  - WriteTo: {writer: {type: keeping.Keeping}}\n"
    )
    trainer = build(config)
    keeping = importlib.import_module("keeping")
    assert [one.is_open for one in keeping.made] == [True]
    trainer.train()
    trainer.test()
    assert [(one.is_open, one.count > 0) for one in keeping.made] == [(False, True)] * 2
