import pytest
from tests.tiny import make_classifier

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks.ending._watch_metric import WatchMetric


class Watch(WatchMetric):
    def __init__(self, metric):
        super().__init__(metric)
        self.seen = []

    def look(self, run, value):
        self.seen.append((run.progress.iter, value))


def watch(metric, *hooks, **options):
    hook = Watch(metric)
    make_classifier(hooks=[hook, *hooks], **({"max_epochs": 2} | options)).train()
    return hook.seen


def iterations(seen):
    return [iteration for iteration, _ in seen]


def test_a_validation_metric_is_seen_after_each_validation():
    assert iterations(watch("val/loss")) == [3, 6]
    assert iterations(watch("val/loss", val_every="2 iters")) == [2, 4, 6]


def test_a_training_metric_is_seen_as_the_mean_of_the_epoch():
    losses = []

    class Collect(Hook):
        def after_train_iter(self, run):
            losses.append(run.loss.item())

    seen = watch("train/loss", Collect())
    assert iterations(seen) == [3, 6]
    means = [sum(losses[:3]) / 3, sum(losses[3:]) / 3]
    assert [value for _, value in seen] == pytest.approx(means)


def test_a_metric_that_a_later_hook_puts_is_seen_at_the_end_of_the_epoch():
    class Late(Hook):
        priority = 100
        writes = ("val/late",)

        def after_val(self, run):
            run.metrics.put("val/late", run.progress.iter)

    assert watch("val/late", Late()) == [(3, 3.0), (6, 6.0)]


def test_an_old_value_of_the_validation_is_not_seen_again():
    class Late(Hook):
        writes = ("val/late",)

        def after_val(self, run):
            run.metrics.put("val/late", run.progress.iter)

    seen = watch("val/late", Late(), max_epochs=4, val_every="2 epochs")
    assert iterations(seen) == [6, 12]  # There is no validation in the other epochs.


def test_a_metric_of_a_hook_is_seen_after_each_epoch():
    class Put(Hook):
        writes = ("knn/accuracy",)

        def after_train_epoch(self, run):
            run.metrics.put("knn/accuracy", run.progress.iter / 10)

    assert watch("knn/accuracy", Put()) == [(3, 0.3), (6, 0.6)]


@pytest.mark.parametrize(
    ("metric", "meant"),
    [
        ("loss", "val/loss"),
        ("val_loss", "val/loss"),
        ("train_a_loss", "train/a_loss"),
        ("top_k", "val/top_k"),
        ("/loss", "val/loss"),
    ],
)
def test_a_metric_without_a_phase_is_rejected_with_a_suggestion(metric, meant):
    with pytest.raises(HookError, match=f"Watch: .* has no phase. Did you mean '{meant}'"):
        Watch(metric)
