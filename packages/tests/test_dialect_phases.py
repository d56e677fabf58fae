"""Hooks of every dialect live through every phase of a run, in whatever order it is called."""

import inspect

import pytest
from tests.test_dialects import MAKERS
from tests.tiny import make_data, make_trainer

METHODS = ("on_", "before_", "after_", "setup", "teardown")


def hook_with_all_methods(name, called):
    """A hook that overrides whatever its base class lets it override."""
    kind, _ = MAKERS[name](lambda hook, world: None)
    base = kind.__mro__[1]

    def method(name):
        return lambda self, *args, **kwargs: called.append(name)

    names = [name for name, _ in inspect.getmembers(base, callable) if name.startswith(METHODS)]
    return type("Foreign", (base,), {name: method(name) for name in names})()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("phases", ["predict test validate train", "train predict train"])
def test_phases_may_follow_each_other_in_any_order(name, phases):
    called = []
    data = {name: make_data(8) for name in ("val_data", "data.test", "data.predict")}
    trainer = make_trainer(hooks=[hook_with_all_methods(name, called)], run_dir="run", **data)
    for phase in phases.split():
        limit = {"max_epochs": trainer.run.progress.epoch + 1} if phase == "train" else {}
        getattr(trainer, phase)(**limit)
    trainings = phases.split().count("train")
    assert trainer.run.progress.epoch == trainings
    (ends,) = {"after_training", "after_train", "on_train_end", "on_end"} & set(called)
    assert called.count(ends) >= trainings
