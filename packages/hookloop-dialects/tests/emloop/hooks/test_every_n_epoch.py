"""The base of hooks that act every n-th epoch."""

import pytest

from hookloop_dialects.emloop.hooks import EveryNEpoch


class Note(EveryNEpoch):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seen = []

    def _after_n_epoch(self, epoch_id, **kwargs):
        self.seen.append((epoch_id, *kwargs))


@pytest.mark.parametrize(("period", "epochs"), [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (9, [0])])
def test_it_acts_every_nth_epoch_and_after_the_zeroth(period, epochs):
    hook = Note(n_epochs=period)
    for epoch in range(5):
        hook.after_epoch(epoch_id=epoch, epoch_data={})
    assert hook.seen == [(epoch, "epoch_data") for epoch in epochs]


@pytest.mark.parametrize("period", [0, -1])
def test_a_period_below_1_is_rejected_when_made(period):
    with pytest.raises(ValueError, match=f"at least 1, not {period}"):
        Note(n_epochs=period)


def test_it_is_abstract():
    with pytest.raises(TypeError, match="_after_n_epoch"):
        EveryNEpoch()
