"""The base of hooks that act when a variable stops improving."""

import pytest

from hookloop_dialects.emloop.hooks import OnPlateau


class Note(OnPlateau):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.epochs = []

    def _on_plateau_action(self, epoch_id, **kwargs):
        self.epochs.append(epoch_id)


def run(hook, values):
    for epoch, value in enumerate(values, 1):
        hook.after_batch("valid", {"loss": [value - 1, value + 1]})
        epoch_data = {"valid": {}}
        hook.after_epoch(epoch, epoch_data)
        assert epoch_data["valid"]["loss"] == {"mean": value}
    return hook.epochs


@pytest.mark.parametrize(
    ("objective", "values", "acted"),
    [
        ("min", [5.0, 4.0, 3.0, 2.0], []),
        ("min", [1.0, 2.0, 3.0, 4.0], [3, 4]),
        ("min", [1.0, 1.0, 1.0, 1.0], []),
        ("min", [3.0, 2.0, 1.0, 1.0, 4.0], [5]),
        ("max", [1.0, 2.0, 3.0, 4.0], []),
        ("max", [4.0, 3.0, 2.0, 1.0], [3, 4]),
    ],
)
def test_it_acts_when_the_short_window_is_worse_than_the_long_one(objective, values, acted):
    assert run(Note(long_term=4, short_term=2, objective=objective), values) == acted


def test_the_window_survives_a_resume():
    first = Note(long_term=4, short_term=1)
    run(first, [1.0, 1.0])
    again = Note(long_term=4, short_term=1)
    again.load_state_dict(first.state_dict())
    assert run(again, [2.0]) == [1]


def test_wrong_arguments_are_rejected_when_made():
    with pytest.raises(ValueError, match="objective='less': write min or max"):
        Note(objective="less")
    with pytest.raises(AssertionError, match="long_term"):
        Note(long_term=1, short_term=2)
    with pytest.raises(TypeError, match="_on_plateau_action"):
        OnPlateau()
