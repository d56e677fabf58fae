"""The comparison with records is itself tested: it must neither be too strict nor too lenient."""

import pytest
from tests.alike import assert_alike
from tests.names import epoch_file


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        ({"a": [1, 0.1561535894870758]}, {"a": [1, 0.1561536]}),
        ("loss: 0.9114  lr: 1.0000e-01", "loss: 0.9115  lr: 1.0000e-01"),
        (float("nan"), float("nan")),
        (["x", True, None], ["x", True, None]),
    ],
)
def test_what_differs_by_rounding_is_alike(recorded, found):
    assert_alike(recorded, found)


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        (0.1561535, 0.1561935),
        (1, 1.0),
        (3, 4),
        (epoch_file(2), epoch_file(3)),
        ("loss: 0.9114", "loss: 0.9117"),
        ("loss: 0.9114", "error: 0.9114"),
        ("lr: 1.0000e-01", "lr: 1.0100e-01"),
        ("lr: 1.0000e-01", "lr: 1.0000e-02"),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
    ],
)
def test_everything_else_is_not(recorded, found):
    with pytest.raises(AssertionError):
        assert_alike(recorded, found)
