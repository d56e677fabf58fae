import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, precision_recall_fscore_support
from tests.tiny import make_classifier, make_trainer

from hookloop.errors import HookError, MetricError
from hookloop.hooks import ClassificationMetrics


def outputs_and_targets(trainer):
    inputs, targets = (torch.cat(parts) for parts in zip(*trainer.run.val_data[""], strict=True))
    trainer.run.model.eval()
    return trainer.run.model(inputs).argmax(1).numpy(), targets.numpy()


@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
def test_the_numbers_are_those_of_scikit_learn(average):
    hook = ClassificationMetrics(average=average)
    trainer = make_classifier(hooks=[hook], metrics={}, max_epochs=2)
    trainer.train()
    predicted, targets = outputs_and_targets(trainer)
    expected = precision_recall_fscore_support(targets, predicted, average=average, zero_division=0)
    found = [trainer.run.metrics.latest(f"val/{name}") for name in ("precision", "recall", "f1")]
    assert found == pytest.approx(list(expected[:3]))
    assert trainer.run.metrics.latest("val/accuracy") == pytest.approx(
        accuracy_score(targets, predicted)
    )


def test_without_an_average_each_class_has_its_own():
    trainer = make_classifier(hooks=[ClassificationMetrics(average=None, prefix="head_")])
    trainer.train()
    predicted, targets = outputs_and_targets(trainer)
    expected = precision_recall_fscore_support(targets, predicted, zero_division=0)
    found = [trainer.run.metrics.latest(f"val/head_recall/{index}") for index in range(3)]
    assert found == pytest.approx(list(expected[1]))
    assert "val/head_accuracy" in trainer.run.metrics


def test_binary_looks_at_class_one_and_scores_may_be_single():
    targets = torch.tensor([0, 0, 1, 1, 1, -100])  # -100 means "ignore", as in torch's losses.
    scores = torch.tensor([-1.0, 2.0, 3.0, -1.0, 1.0, 5.0])

    def step(run, batch):
        return {"loss": run.model(batch[0]).mean(), "scores": scores[:, None], "y": targets}

    hook = ClassificationMetrics("scores", "y", average="binary")
    trainer = make_trainer(hooks=[hook], step=step)
    trainer.train()
    latest = trainer.run.metrics.latest
    assert latest("train/precision") == latest("train/recall") == pytest.approx(2 / 3)
    assert (latest("train/specificity"), latest("train/accuracy")) == (0.5, 0.6)


def test_what_another_part_computes_is_left_out_unless_it_is_named():
    trainer = make_classifier(hooks=[ClassificationMetrics()])
    names = ["loss", "accuracy", "precision", "recall", "f1", "specificity"]
    assert set(trainer.validate()) == {f"val/{name}" for name in names}


def test_a_single_score_per_position_means_two_classes():
    targets = torch.tensor([[[0, 1], [1, 1]]] * 4)

    def step(run, batch):
        scores = torch.where(targets > 0, 1.0, -1.0)[:, None]
        scores[:, 0, 0, 0] = 1.0  # One of four positions is predicted wrongly.
        return {"loss": run.model(batch[0]).mean(), "scores": scores, "y": targets}

    hook = ClassificationMetrics("scores", "y", average="binary", metrics=["accuracy"])
    trainer = make_trainer(hooks=[hook], step=step)
    trainer.train()
    assert trainer.run.metrics.latest("train/accuracy") == 0.75


def test_a_metric_that_exists_already_is_not_mixed_with():
    with pytest.raises(HookError, match="'val/accuracy'"):
        make_classifier(
            hooks=[ClassificationMetrics(metrics=["accuracy"], streams=["val"])]
        ).train()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": "makro"}, "Did you mean 'macro'"),
        ({"metrics": ["f2"]}, r"no metric 'f2'.* There are precision, recall"),
    ],
)
def test_bad_parameters_are_rejected(options, message):
    with pytest.raises(HookError, match=message):
        ClassificationMetrics(**options)


def test_binary_with_three_classes_is_rejected():
    with pytest.raises(MetricError, match="needs two classes, there are 3"):
        make_classifier(hooks=[ClassificationMetrics(average="binary")], metrics={}).train()


def test_specificity_is_the_share_of_negatives_that_are_recognized():
    from hookloop.metrics.confusion import class_scores

    matrix = np.array([[5, 1, 0], [2, 3, 1], [0, 0, 8]])
    expected = [(3 + 1 + 0 + 8) / 14, (5 + 0 + 0 + 8) / 14, (5 + 1 + 2 + 3) / 12]
    assert class_scores(matrix)["specificity"] == pytest.approx(expected)
