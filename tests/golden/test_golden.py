"""The recorder itself: one tree is equal to itself, and a draw that moves is found and named."""

import pytest
import torch
from tests.golden.compare import compare
from tests.golden.configurations import CONFIGURATIONS, At
from tests.golden.expected import Expected
from tests.golden.parts import batches, mse, network, sgd
from tests.golden.record import record_all
from tests.golden.setting import Configuration

pytestmark = pytest.mark.slow  # Trainings in processes of their own.

TWO = [one for one in CONFIGURATIONS if one.name in ("1", "11")]


def test_a_tree_is_equal_to_itself(tmp_path):
    base, new = tmp_path / "base", tmp_path / "new"
    record_all(base, TWO)
    record_all(new, TWO, base)
    result = compare(base, new, expected=())
    assert not result.differences, "\n".join(map(str, result.differences))
    assert result.compared == 5  # Two whole, two counted, one resumed after it was killed.


def drawing_at(point):
    """A training that draws once per iteration, before or after the weights are updated."""

    def train(attempt):
        model = network(drop=0)
        hooks = [At(point, lambda run: torch.rand(()))]
        trainer = attempt.trainer(
            model,
            train_data=batches(8),
            loss=mse,
            optimizer=sgd(model),
            hooks=hooks,
            max_epochs=1,
            defaults=False,
            save=None,
        )
        attempt.train(trainer)

    return Configuration(99, "a draw", train, counts=False)


def test_a_draw_that_moves_is_named(tmp_path):
    base, new = tmp_path / "base", tmp_path / "new"
    record_all(base, [drawing_at("before_update")])
    record_all(new, [drawing_at("after_update")])
    (found,) = compare(base, new, expected=()).differences  # The weights hide it.
    assert str(found).startswith("99, whole, trace: [")
    assert "before_update (last) in train of 'train', iteration 0, epoch 0" in found.how
    assert "the generators torch stand elsewhere" in found.how
    reason = Expected("a test", configuration="99", what="trace")
    result = compare(base, new, expected=(reason,))
    assert not result.differences and {rule for _, rule in result.expected} == {reason}
