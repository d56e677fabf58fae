"""Ways to mix streams, and weights that follow the run."""

from collections import Counter

import pytest

from hookloop.data.mixing.weights import Weights, draw, way_of
from hookloop.engine.progress import Progress
from hookloop.errors import DataError

NAMES = ["clean", "noisy"]


def test_no_way_is_rejected_with_the_choices():
    with pytest.raises(DataError, match=r"noisy\).*'in order'"):
        way_of(None, NAMES)


def test_an_unknown_way_names_the_nearest():
    with pytest.raises(DataError, match="'cycle'"):
        way_of("cycles", NAMES)


def test_draws_follow_the_weights_and_the_key():
    drawn = [draw(7, count, {"clean": 3.0, "noisy": 1.0}) for count in range(4000)]
    assert 2900 < Counter(drawn)["clean"] < 3100
    assert drawn == [draw(7, count, {"clean": 3.0, "noisy": 1.0}) for count in range(4000)]
    assert drawn != [draw(8, count, {"clean": 3.0, "noisy": 1.0}) for count in range(4000)]


def test_a_stream_of_weight_0_is_never_drawn():
    weights = {"clean": 0.0, "noisy": 1e-9, "other": 0.0}
    assert {draw(0, count, weights) for count in range(100)} == {"noisy"}


def test_a_weight_may_change_at_points_of_the_run():
    weights = Weights({"clean": {0: 3, "10 iters": 2, "2 epochs": 1}, "noisy": 1}, NAMES)
    at = [Progress(), Progress(iter=9), Progress(iter=10, epoch=1), Progress(iter=20, epoch=2)]
    assert [weights.at(progress)["clean"] for progress in at] == [3, 3, 2, 1]


def test_a_function_of_the_progress():
    weights = Weights(lambda progress: {"clean": 1, "noisy": progress.epoch}, NAMES)
    assert weights.at(Progress(epoch=4)) == {"clean": 1.0, "noisy": 4.0}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clean": 1, "nosy": 1}, "'nosy', which is not a stream .* Did you mean 'noisy'"),
        ({"clean": 1}, "no weight for the stream 'noisy'"),
        ({"clean": 0, "noisy": 0}, "all streams the weight 0"),
        ({"clean": -1, "noisy": 1}, "the weight -1 for 'clean'"),
        ({"clean": True, "noisy": 1}, "the weight True"),
        ({"clean": float("nan"), "noisy": 1}, "the weight nan"),
        ({"clean": "much", "noisy": 1}, "the weight 'much'"),
        ({"clean": {"5 epochs": 1}, "noisy": 1}, "does not begin at 0"),
        ({"clean": {}, "noisy": 1}, "does not begin at 0"),
        ({"clean": {0: 1, "5 min": 2}, "noisy": 1}, "is a time, which a resume"),
        ({"clean": {0: 1, "later": 2}, "noisy": 1}, "'later' is not a point of the run"),
    ],
)
def test_what_is_rejected(given, message):
    with pytest.raises(DataError, match=message) as caught:
        Weights(given, NAMES)
    assert caught.value.argument == "mix"


@pytest.mark.parametrize("returned", [None, 3, {"clean": 1}, {"clean": 0, "noisy": 0}])
def test_what_a_function_must_not_return(returned):
    with pytest.raises(DataError, match="mix="):
        Weights(lambda _: returned, NAMES).at(Progress())
