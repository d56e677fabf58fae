import pytest

from hookloop.core.progress import Progress
from hookloop.every import Every


@pytest.mark.parametrize(
    ("moment", "iter", "epoch", "is_reached"),
    [
        (5, 4, 9, False),
        (5, 5, 0, True),
        ("2 epochs", 99, 1, False),
        ("2 epochs", 0, 2, True),
    ],
)
def test_a_moment_is_reached_when_so_many_are_done(moment, iter, epoch, is_reached):
    assert Every.parse(moment).reached(Progress(iter=iter, epoch=epoch)) is is_reached
