"""Which hooks may request something in any iteration."""

from hookloop import Hook
from hookloop.engine.hook import FunctionHook
from hookloop.engine.sync_points import may_request
from hookloop.hooks import SaveCheckpoint, StopAfter


class Stopper(Hook):
    def after_train_iter(self, run):
        self._decide(run)

    def _decide(self, run):
        if run.loss < 0:
            run.stop("negative")


class Observer(Hook):
    def after_train_iter(self, run):
        run.metrics.put("train/twice", run.loss * 2)


class Inherits(Stopper):
    pass


def test_hooks_whose_code_names_a_request_are_found():
    assert may_request(Stopper()) and may_request(Inherits())
    assert not may_request(Observer())


def test_functions_are_looked_into():
    def save_it(run):
        run.save()

    def inner(run):
        def later():
            run.validate()

        later()

    assert may_request(FunctionHook(save_it, "after_train_iter"))
    assert may_request(FunctionHook(inner, "after_train_iter"))
    assert not may_request(FunctionHook(lambda run: None, "after_train_iter"))


def test_built_in_hooks_say_themselves_what_all_ranks_do():
    assert not may_request(SaveCheckpoint()) and not may_request(StopAfter(epochs=1))
