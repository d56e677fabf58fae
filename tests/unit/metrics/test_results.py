import json

import pytest
from tests.tiny import make_classifier

from hookloop import Hook
from hookloop.errors import MissingMetricError
from hookloop.metrics.results import LiveResults, Results
from hookloop.metrics.store import MetricStore


def test_names_are_full_and_a_look_up_may_omit_the_phase():
    results = Results("val", {"val/loss": 0.5, "val/a/loss": 0.7})
    assert list(results) == ["val/loss", "val/a/loss"]
    assert results["loss"] == results["val/loss"] == 0.5
    assert results["a/loss"] == results.get("a/loss") == results.get("val/a/loss", 0) == 0.7
    assert "loss" in results and "accuracy" not in results
    assert results.get("accuracy") is None and results.get("accuracy", 3) == 3
    assert json.loads(json.dumps(results)) == {"val/loss": 0.5, "val/a/loss": 0.7}
    assert results.short() == {"loss": 0.5, "a/loss": 0.7}


def test_an_unknown_name_raises_a_key_error_with_the_nearest_name():
    results = Results("val", {"val/accuracy": 0.5})
    with pytest.raises(MissingMetricError, match="'val/accuracy'.*val/acc"):
        results["acuracy"]
    with pytest.raises(KeyError) as caught:
        results["val/nothing"]
    assert str(caught.value).startswith("There is no metric 'val/nothing' in this val phase.")


def test_live_results_include_values_that_are_put_later():
    store = MetricStore()
    store.put("val/loss", 0.5)
    live = LiveResults(store, "val")
    assert dict(live) == {"val/loss": 0.5} and len(live) == 1
    store.put("val/quality", 0.9)
    store.put("train/loss", 3.0)
    assert dict(live) == {"val/loss": 0.5, "val/quality": 0.9}
    assert live["quality"] == 0.9 and "quality" in live and live.get("other") is None
    assert repr(live) == "{'val/loss': 0.5, 'val/quality': 0.9}"


def test_setting_a_number_replaces_it_for_every_reader():
    store = MetricStore()
    store.put("val/loss", 0.5)
    live = LiveResults(store, "val")
    live["loss"] = 0.25
    live.update({"val/quality": 1.0})
    assert dict(live) == {"val/loss": 0.25, "val/quality": 1.0}
    (values,) = store.read_new("writer", (0, 0)).values()
    assert values == {"val/loss": 0.25, "val/quality": 1.0}
    del live["quality"]
    assert dict(live) == {"val/loss": 0.25} and "val/quality" in store
    with pytest.raises(MissingMetricError):
        del live["quality"]


class Compute(Hook):
    priority = "HIGH"
    writes = ("val/quality",)

    def after_val_epoch(self, run, metrics):
        run.metrics.put("val/quality", 0.75)


class See(Hook):
    reads = ("val/quality",)

    def after_val_epoch(self, run, metrics):
        self.seen = dict(metrics)


def test_later_hooks_and_the_caller_see_what_a_hook_computed():
    see = See()
    results = make_classifier(hooks=[see, Compute()]).validate()
    assert see.seen["val/quality"] == results["quality"] == 0.75
    assert set(results) == set(see.seen) == {"val/loss", "val/accuracy", "val/quality"}
