"""Hooks of VISSL and ClassyVision: events, counters, the task, state."""

import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop import dialects
from hookloop.core.hook import Hook
from hookloop.dialects.vissl import (
    ClassyHook,
    SSLClassyHookFunctions,
    build_hook,
    register_hook,
)
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint

EVENTS = [event.name for event in SSLClassyHookFunctions]


def tracing(note, events=EVENTS):
    """A hook class that notes something at each event."""

    def at(event):
        return lambda self, task: self.calls.append((event, *note(task)))

    body = {event: at(event) for event in EVENTS if event in events}
    noop = {event: ClassyHook._noop for event in EVENTS[:2] + EVENTS[6:9] if event not in events}
    kind = type("Trace", (ClassyHook,), {**noop, **body})
    kind.calls = []
    return kind()


def counters(task):
    phase = f"{'T' if task.train else 'e'}{task.phase_idx}"
    return phase, task.iteration, task.local_iteration_num


def test_events_and_counters_are_those_that_vissl_was_measured_with(tmp_path):
    hook = tracing(counters)
    # Two train batches, one test batch, two epochs.
    make_trainer(
        hooks=[hook],
        train_data=make_data(8),
        val_data=make_data(4),
        max_epochs=2,
        run_dir=tmp_path / "run",
    ).train()

    def step(phase, iteration, local):
        return [
            ("on_forward", phase, iteration, local),
            ("on_loss_and_meter", phase, iteration, local),
            ("on_backward", phase, iteration, local),
            ("on_update", phase, iteration, local),
            ("on_step", phase, iteration + 1, local + 1),
        ]

    def test(phase, iteration, local):
        return [
            ("on_phase_start", phase, iteration, local),
            ("on_forward", phase, iteration, local),
            ("on_loss_and_meter", phase, iteration, local),
            ("on_step", phase, iteration, local + 1),
            ("on_phase_end", phase, iteration, local + 1),
        ]

    assert hook.calls == [
        ("on_start", "T-1", 0, -1),
        ("on_phase_start", "T0", 0, 0),
        *step("T0", 0, 0),
        *step("T0", 1, 1),
        ("on_phase_end", "T0", 2, 2),
        *test("e1", 2, 3),
        ("on_phase_start", "T2", 2, 5),
        *step("T2", 2, 5),
        *step("T2", 3, 6),
        ("on_phase_end", "T2", 4, 7),
        *test("e3", 4, 8),
        ("on_end", "T3", 4, 9),
    ]


def test_a_test_has_a_start_a_phase_and_an_end_of_its_own(tmp_path):
    hook = tracing(lambda task: (task.phase_type, task.test_only))
    trainer = make_trainer(hooks=[hook], test_data=make_data(4), run_dir=tmp_path / "run")
    trainer.test()
    assert [call[0] for call in hook.calls] == [
        "on_start", "on_phase_start", "on_forward", "on_loss_and_meter", "on_step",
        "on_phase_end", "on_end",
    ]  # fmt: skip
    assert hook.calls[2] == ("on_forward", "test", True)


def test_on_exception_is_called_and_the_error_goes_on(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("the user's own fault")

    hook = tracing(lambda task: (task.iteration,), ["on_exception", "on_end"])
    trainer = make_trainer(hooks=[hook, Fail()], run_dir=tmp_path / "run")
    with pytest.raises(RuntimeError, match="the user's own fault"):
        trainer.train()
    assert hook.calls == [("on_exception", 1)]


def test_the_indices_of_phases_count_as_in_vissl(tmp_path):
    hook = tracing(lambda task: (task.train_phase_idx, task.eval_phase_idx), ["on_phase_start"])
    make_trainer(
        hooks=[hook], val_data=make_data(4), max_epochs=3, run_dir=tmp_path / "run"
    ).train()
    assert [call[1:] for call in hook.calls] == [(0, -1), (0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]


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
        config={"LOG_FREQUENCY": 7, "MODEL": {"NAME": "tiny"}},
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


def test_what_a_hook_puts_into_the_last_batch_takes_effect(tmp_path):
    class Halve(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def on_loss_and_meter(self, task):
            task.last_batch.loss = task.last_batch.loss * 0

    trainer = make_trainer(hooks=[Halve()], run_dir=tmp_path / "run")
    before = [parameter.clone() for parameter in trainer.run.model.parameters()]
    trainer.train()
    for one, other in zip(before, trainer.run.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_an_attribute_that_is_not_offered_names_hook_attribute_and_a_way(tmp_path):
    class Ask(ClassyHook):
        on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def on_start(self, task):
            assert not hasattr(task, "something_else")
            task.itration  # noqa: B018 - the question itself

    trainer = make_trainer(hooks=[Ask()], run_dir=tmp_path / "run")
    with pytest.raises(HookError, match=r"'ask' asks for task.itration.*'iteration'"):
        trainer.train()


def test_the_state_of_a_hook_is_saved_and_restored(tmp_path):
    class Count(ClassyHook):
        on_start = on_phase_start = on_phase_end = on_end = ClassyHook._noop

        def __init__(self):
            super().__init__()
            self.state.steps = 0
            self.state.history = {"train": []}

        def on_step(self, task):
            self.state.steps += 1
            self.state.history["train"].append(task.local_iteration_num)

    def train(epochs, **options):
        hook = Count()
        make_trainer(
            hooks=[hook, SaveCheckpoint()],
            max_epochs=epochs,
            val_data=make_data(4),
            run_dir=tmp_path / options.pop("name", "run"),
            **options,
        ).train()
        return hook.state

    train(1)
    resumed, whole = train(3, resume=True), train(3, name="whole")
    assert resumed.steps == whole.steps == 12
    assert resumed.history == whole.history


def test_a_hook_must_define_its_five_events():
    class Lacking(ClassyHook):
        def on_start(self, task): ...

    with pytest.raises(TypeError, match="abstract"):
        Lacking()


def test_hooks_are_registered_and_built_by_name():
    @register_hook("quiet_hook_of_this_test")
    class Quiet(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def __init__(self, loud=False):
            super().__init__()
            self.loud = loud

    assert build_hook({"name": "quiet_hook_of_this_test", "loud": True}).loud
    with pytest.raises(AssertionError, match="Did you mean 'checkpoint'"):
        build_hook({"name": "chekpoint"})


# ruff: noqa: E501 - the document's own lines
TEMPLATE = '''
from classy_vision.hooks.classy_hook import ClassyHook

class MyAwesomeNewHook(ClassyHook):
    """
    Logs the number of paramaters, forward pass FLOPs and activations of the model.
    Adapted from: https://github.com/facebookresearch/ClassyVision/blob/main/classy_vision/hooks/model_complexity_hook.py#L20    # NOQA
    """

    # define all the functions that your hook should execute. If the hook
    # executes nothing for a particular function, mark it as a noop.
    # Example: if the hook only does something for `on_start', then set:
    #    on_phase_start = ClassyHook._noop
    #    on_forward = ClassyHook._noop
    #    on_loss_and_meter = ClassyHook._noop
    #    on_backward = ClassyHook._noop
    #    on_update = ClassyHook._noop
    #    on_step = ClassyHook._noop
    #    on_phase_end = ClassyHook._noop
    #    on_end = ClassyHook._noop

    def on_start(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute at the beginning of training
        ...

    def on_phase_start(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute at the beginning of each epoch
        # (training or test epoch). Use `task.train' boolean to detect if the current
        # epoch is train or test
        ...

    def on_forward(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after the model forward pass is done
        # should handle the train or test phase.
        # Use `task.train' boolean to detect if the current epoch is train or test
        ...

    def on_loss_and_meter(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after the loss and meters are
        # calculated
        ...

    def on_backward(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after backward pass is done. Note
        # that the model parameters are not yet updated
        ...

    def on_update(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after the model parameters are updated
        # by the optimizer following LR and weight decay
        ...

    def on_step(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after a training / test iteration
        # is done
        ...

    def on_phase_end(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute after a phase (train or test)
        # is done
        ...

    def on_end(self, task: "tasks.ClassyTask") -> None:
        # implement what your hook should execute at the end of training
        # (or testing, feature extraction)
        ...
'''


def test_the_template_of_the_document_acts_at_every_point(tmp_path):
    names = {}
    with dialects.alias("vissl"):
        exec(TEMPLATE, names)
    seen = []

    class Filled(names["MyAwesomeNewHook"]):
        pass

    for event in EVENTS[:9]:
        original = getattr(names["MyAwesomeNewHook"], event)

        def call(self, task, event=event, original=original):
            seen.append((event, task.train))
            original(self, task)

        setattr(Filled, event, call)
    trainer = make_trainer(hooks=[Filled()], val_data=make_data(4), run_dir=tmp_path / "run")
    trainer.train()
    assert {event for event, _ in seen} == set(EVENTS[:9])
    assert not {event for event, train in seen if not train} & {"on_backward", "on_update"}


def test_the_template_as_it_is_trains(tmp_path):
    names = {}
    with dialects.alias("vissl"):
        exec(TEMPLATE, names)
    hook = names["MyAwesomeNewHook"]()
    assert make_trainer(hooks=[hook], run_dir=tmp_path / "run").train().status == "completed"


def test_sizes_of_a_model_as_hook_files_import_them():
    with dialects.alias("vissl"):
        from classy_vision.generic.distributed_util import all_reduce_max
        from classy_vision.generic.profiler import (
            compute_activations,
            compute_flops,
            count_params,
        )
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 1), torch.nn.Flatten(), torch.nn.Linear(8, 5))
    assert count_params(model) == 3 * 2 + 2 + 8 * 5 + 5
    assert compute_flops(model, (3, 2, 2)) == 3 * 2 * 4 + 8 * 5
    assert compute_activations(model, (3, 2, 2)) == 2 * 4
    assert model.training
    assert all_reduce_max(torch.tensor(2.0)) == 2
