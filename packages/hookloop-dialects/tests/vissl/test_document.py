"""The template of VISSL's document."""

from tests.tiny import make_data, make_trainer
from tests.vissl.phases import EVENTS

from hookloop import dialects

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
