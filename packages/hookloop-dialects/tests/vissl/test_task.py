"""The run as hooks of VISSL see it."""

import pytest
import torch
from tests import warm
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError
from hookloop_dialects.vissl import ClassyHook, Task
from hookloop_dialects.vissl.hooks import SetDataSamplerEpochHook


def test_the_task_offers_what_hooks_of_vissl_touch(tmp_path):
    seen = {}

    class Look(ClassyHook):
        on_start = on_phase_start = on_step = on_end = ClassyHook._noop

        def on_update(self, task):
            seen.update(
                where=task.where,
                max_iteration=task.max_iteration,
                batches=(task.num_batches_per_phase, task.num_train_phases),
                rate=task.optimizer.options_view.lr,
                decay=task.optimizer.options_view.weight_decay,
                sample=sorted(task.last_batch.sample),
                output=task.last_batch.model_output.shape,
                target=task.last_batch.target.shape,
                updates=task.num_updates,
                sizes=(task.get_batchsize_per_replica(), task.get_global_batchsize()),
                folder=task.checkpoint_folder,
                gpu=task.use_gpu,
                frequency=task.config.LOG_FREQUENCY,
                nested=task.config["MODEL"]["NAME"],
                hooks=task.hooks,
            )

        def on_phase_end(self, task):
            seen["losses"] = len(task.losses), task.batches, len(task.batch_time)

    hook = Look()
    trainer = make_trainer(
        hooks=[hook],
        setup={"config": {"LOG_FREQUENCY": 7, "MODEL": {"NAME": "tiny"}}},
        run_dir=tmp_path / "run",
    )
    trainer.train()
    assert seen["where"] == pytest.approx(2 / 3)
    assert (seen["max_iteration"], seen["batches"]) == (3, (3, 1))
    assert (seen["rate"], seen["decay"]) == (0.05, 0)
    assert (seen["sample"], seen["output"]) == (["input", "target"], (4, 1))
    assert (seen["updates"], seen["sizes"]) == (8, (4, 4))
    assert seen["folder"] == str(tmp_path / "run") and not seen["gpu"]
    assert (seen["frequency"], seen["nested"]) == (7, "tiny")
    assert seen["hooks"] == [hook]
    assert seen["losses"] == (3, 3, 3)


def test_an_attribute_that_is_not_offered_names_hook_attribute_and_a_way(tmp_path):
    class Ask(ClassyHook):
        on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def on_start(self, task):
            assert not hasattr(task, "something_else")
            task.itration  # noqa: B018 - the question itself

    trainer = make_trainer(hooks=[Ask()], run_dir=tmp_path / "run")
    with pytest.raises(HookError, match=r"'ask' asks for task.itration.*'iteration'"):
        trainer.train()


def test_loaders_and_data_sets_are_found_by_phase():
    task = Task(make_trainer(val_data=make_data(8), data={"test": make_data(4)}).run)
    assert {name: len(data) for name, data in task.datasets.items()} == {"train": 12, "test": 8}
    task = Task(make_trainer(data={"test": make_data(4)}, train_data=[1, 2]).run)
    assert task.datasets["train"] == [1, 2] and len(task.dataloaders["test"]) == 1


@pytest.mark.parametrize(
    ("limits", "phases", "iterations", "where"),
    [({"max_epochs": 2}, 2, 6, 0.0), ({"max_iters": 4}, -1, 4, 0.0)],
)
def test_limits_that_are_unknown_are_minus_one(limits, phases, iterations, where):
    task = Task(make_trainer(**limits).run)
    assert (task.num_train_phases, task.max_iteration, task.where) == (phases, iterations, where)


def test_batches_of_a_phase_are_those_of_its_data():
    run = make_trainer(
        val_data={"a": make_data(8), "b": make_data(4)}, data={"test": make_data(16)}
    ).run
    task, found = Task(run), {}
    for phase in ("train", "val", "test"):
        run.phase = phase
        found[phase] = (task.train, task.phase_type, task.num_batches_per_phase)
    assert found == {"train": (True, "train", 3), "val": (False, "test", 3),
                     "test": (False, "test", 4)}  # fmt: skip
    stream = make_trainer(val_data=iter([1])).run
    stream.phase = "val"
    assert Task(stream).num_batches_per_phase == -1


def test_meters_are_metrics_without_losses_and_times(tmp_path):
    class Look(ClassyHook):
        on_start = on_phase_start = on_step = on_end = ClassyHook._noop

        def on_phase_end(self, task):
            seen.append(
                (task.phase_type, [(meter.name, list(meter.value)) for meter in task.meters])
            )

    def size(output, targets):
        return output.abs().mean()

    seen = []
    make_trainer(
        hooks=[Look()], val_data=make_data(4), metrics={"size": size}, run_dir=tmp_path / "run"
    ).train()
    assert seen[1] == ("test", [("size", ["size"])])


def test_run_hooks_calls_a_method_of_every_hook_that_has_it(tmp_path):
    class Fire(ClassyHook):
        on_start = on_phase_start = on_phase_end = on_end = ClassyHook._noop

        def on_step(self, task):
            task.run_hooks("on_mine")

    class Listen(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def on_mine(self, task):
            seen.append(task.iteration)

    seen = []
    make_trainer(hooks=[Fire(), Listen()], run_dir=tmp_path / "run").train()
    assert seen == [1, 2, 3]


def test_the_state_of_the_task_has_phases_and_hooks(tmp_path):
    class Count(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = ClassyHook._noop

        def __init__(self):
            super().__init__()
            self.state.seen = 3

        def on_end(self, task):
            states.append(task.get_classy_state())

    states = []
    make_trainer(hooks=[Count()], run_dir=tmp_path / "run").train()
    assert states[0]["hooks"] == {"Count": {"seen": 3}}
    assert states[0]["train_phase_idx"] == 0


def test_hooks_may_set_what_vissls_own_hooks_set(tmp_path):
    class Reset(SetDataSamplerEpochHook):
        def on_phase_start(self, task):
            super().on_phase_start(task)
            task.losses, task.batches = [], 0
            task.mine = torch.ones(1)

    hook = Reset()
    trainer = make_trainer(hooks=[hook], run_dir=tmp_path / "run")
    trainer.train()
    (task,) = trainer.run._internals.shared.values()
    assert task.batches == 3 and task.mine == 1


def test_times_of_batches_are_kept_over_phases(tmp_path):
    seen = []

    class Look(ClassyHook):
        on_start = on_phase_start = on_phase_end = on_end = ClassyHook._noop

        def on_update(self, task):
            seen.append(len(task.batch_time))

        def on_step(self, task):
            waited = task.last_batch.step_data["sample_fetch_time"]
            assert 0 <= waited <= task.batch_time[-1]
            seen.append((task.phase_type, len(task.batch_time)))

    make_trainer(
        hooks=[Look()], val_data=make_data(4), max_epochs=2, run_dir=tmp_path / "run"
    ).train()
    first = [0, ("train", 1), 1, ("train", 2), 2, ("train", 3), ("test", 4)]
    assert seen == [*first, 4, ("train", 5), 5, ("train", 6), 6, ("train", 7), ("test", 8)]


@pytest.mark.slow
def test_lines_of_hooks_are_shown_and_kept_even_if_a_constructor_has_logged(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """
import logging
import torch
from classy_vision.hooks import ClassyHook
from hookloop import Trainer


class Say(ClassyHook):
    on_start = on_phase_start = on_step = on_end = ClassyHook._noop

    def __init__(self):
        super().__init__()
        logging.warning("made")  # Python adds a handler to the root logger here.

    def on_phase_end(self, task):
        logging.info("hello")


model = torch.nn.Linear(1, 1)
data = [(torch.ones(1, 1), torch.ones(1, 1))]
Trainer(model, train_data=data, loss=torch.nn.functional.mse_loss, max_epochs=1, hooks=[Say()],
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1), run_dir="run").train()
"""
    )
    ended = warm.run("run", "--alias", "vissl", "train.py", cwd=tmp_path)
    assert ended.stdout.splitlines().count("hello") == 1
    assert "hello" in (tmp_path / "run/run.log").read_text() and "hello" not in ended.stderr
