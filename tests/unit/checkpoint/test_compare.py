import pytest
import torch

from hookloop.checkpoint.state.compare import compare


def test_equal_checkpoints_have_no_difference():
    def checkpoint():
        return {
            "model": {"w": torch.tensor([1.0, float("nan")]), "empty": torch.empty(0)},
            "rng": [{"python": (3, (1, 2), None)}],
            "scaler": None,
        }

    assert compare(checkpoint(), checkpoint()) == []


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0]), "model.w: 0 of 1 numbers differ, by 0 at most"),
        (torch.ones(2), torch.tensor([1.0, 1.5]), "1 of 2 numbers differ, by 0.5 at most"),
        (torch.ones(2), torch.ones(3), "torch.float32 (2,) is not torch.float32 (3,)"),
        (torch.ones(1), torch.ones(1, dtype=torch.float64), "is not torch.float64"),
        (torch.tensor([3]), torch.tensor([4]), "1 of 1 numbers differ"),
        (1, 1.0, "model.w: 1 is not 1.0"),
        ([1, 2], [1], "2 entries are not 1"),
        ([1, 2], [1, 3], "model.w[1]: 2 is not 3"),
        (0.0, -0.0, "0.0 is not -0.0"),
    ],
)
def test_a_difference_is_reported_with_its_key(one, other, text):
    (found,) = compare({"model": {"w": one}}, {"model": {"w": other}})
    assert found.part == "model"
    assert text in str(found)


def test_the_first_difference_of_each_part_is_reported_with_their_number():
    one = {"model": {"a": 1, "b": 2}, "progress": {"iter": 3}, "hooks": {}}
    other = {"model": {"a": 0, "b": 0}, "progress": {"iter": 3}, "hooks": {"ema": {"n": 1}}}
    assert [str(difference) for difference in compare(one, other)] == [
        "model.a: 1 is not 0 (and 1 more of model)",
        "hooks.ema: nothing is not {'n': 1}",
    ]


def test_times_and_the_environment_are_not_compared():
    one = {"metrics": {"train/iter_time": 1.0}, "hooks": {"stop": {"seconds": 3.0}}, "config": 1}
    other = {"metrics": {"train/iter_time": 2.0}, "hooks": {"stop": {"seconds": 4.0}}, "config": 2}
    assert compare(one, other) == []
