"""The native hook that keeps what the hooks of one dialect share."""

from collections.abc import Mapping

from tests.tiny import make_trainer

from hookloop.dialects.adapter import Facade
from hookloop.dialects.companion import Companion, facade_in
from hookloop.engine.hook import Hook
from hookloop.hooks import SaveCheckpoint


class Count(Companion):
    name = "dialect:test"

    def __init__(self):
        self.starts = 0
        self.seen = 0

    def before_run(self, run):
        self.starts += 1

    def after_train_iter(self, run):
        self.seen += 1

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state: Mapping[str, object]):
        self.seen = state["seen"]


class Bring(Hook):
    """Adds the companion, as an adapted hook does."""

    def __init__(self, companion):
        self.companion = companion
        self.noted = []

    def before_run(self, run):
        self.companion.join(run)

    def after_train_iter(self, run):
        self.noted.append(self.companion.seen)


def test_the_first_hook_adds_it_and_the_others_find_it_there():
    companion = Count()
    trainer = make_trainer(hooks=[Bring(companion), Bring(companion).named("again")])
    trainer.train()
    assert companion.starts == 1
    assert companion.seen == 3
    assert [hook.name for hook in trainer.run.hooks].count("dialect:test") == 1


def test_it_acts_before_hooks_of_any_other_priority():
    hook = Bring(Count())
    hook.priority = "VERY_HIGH"
    make_trainer(hooks=[hook]).train()
    assert hook.noted == [1, 2, 3]


def test_its_state_is_in_checkpoints(tmp_path):
    def train(epochs, **options):
        companion = Count()
        hooks = [Bring(companion), SaveCheckpoint()]
        make_trainer(hooks=hooks, max_epochs=epochs, run_dir=tmp_path, **options).train()
        return companion.seen

    assert train(1) == 3
    assert train(3, resume=True) == 9


def test_a_facade_is_made_once_per_run():
    first, second = make_trainer().run, make_trainer().run
    facade = facade_in(first, Facade)
    assert facade.run is first
    assert facade_in(first, Facade) is facade
    assert facade_in(second, Facade) is not facade
