import pytest
from tests.integration.many_ranks import make
from tests.ranks import on_ranks

from hookloop import Hook
from hookloop.engine.sync_points import LONGEST, NEVER, SHORTEST


class Stopper(Hook):
    def after_train_iter(self, run):
        self._decide(run)

    def _decide(self, run):
        if run.loss < 0:
            run.stop("negative")


class Observer(Hook):
    def after_train_iter(self, run):
        run.metrics.put("train/twice", run.loss * 2)


def test_a_process_alone_never_meets():
    trainer, _ = make(None, resume=None, default_hooks=False, max_epochs=1, samples=16)
    trainer.train()
    assert trainer._loop.sync_points.next == NEVER


def meetings_of(hooks):
    trainer, _ = make(None, resume=None, default_hooks=False, max_epochs=1, hooks=hooks)
    sync_points, held = trainer._loop.sync_points, []
    hold = sync_points.hold

    def counted(at):
        held.append(at)
        return hold(at)

    sync_points.hold = counted
    trainer.train()
    return held, trainer.run.progress.iter


@pytest.mark.slow
def test_ranks_meet_rarely_unless_a_hook_may_request_something():
    rare = on_ranks(meetings_of, 2, [Observer()])
    assert rare[0] == rare[1]
    held, iterations = rare[0]
    # The first iterations, which tell how long one takes, and the ends of the epoch and the run.
    assert len(set(held)) < iterations / 2
    often = on_ranks(meetings_of, 2, [Stopper()])
    assert set(range(1, iterations + 1)) <= set(often[0][0])


@pytest.mark.slow
def test_the_distance_follows_from_the_time_of_an_iteration():
    def work():
        trainer, _ = make(None, resume=None, default_hooks=False, max_epochs=1)
        trainer.train()
        sync_points = trainer._loop.sync_points
        sync_points._seconds = 1e-6
        fast = sync_points._distance(0)
        sync_points._seconds = 10.0
        return fast, sync_points._distance(0)

    assert on_ranks(work, 2) == [(LONGEST, SHORTEST)] * 2
