"""Several metrics as one."""

import pytest
from tests.mmengine.parts import Count, Scripted

from hookloop_mmengine.evaluator import BaseMetric, Evaluator, get_metric_value
from hookloop_mmengine.registry import METRICS
from hookloop_mmengine.structures import BaseDataElement


class ToySeen(BaseMetric):
    def process(self, data_batch, data_samples):
        self.results.append((data_batch, data_samples))

    def compute_metrics(self, results):
        return {"seen": list(results)}


@pytest.fixture(autouse=True)
def registered():
    METRICS.register_module(module=ToySeen)
    yield
    del METRICS.module_dict["ToySeen"]


@pytest.mark.parametrize(
    ("metrics", "kinds"),
    [
        (Count(), [Count]),
        ({"type": "ToySeen"}, [ToySeen]),
        ([Count(), {"type": "ToySeen", "prefix": "x"}], [Count, ToySeen]),
        ([], []),
    ],
)
def test_metrics_are_objects_or_described(metrics, kinds):
    assert [type(metric) for metric in Evaluator(metrics).metrics] == kinds


def test_every_metric_gets_batches_and_samples_as_dicts():
    evaluator = Evaluator([ToySeen(), ToySeen(prefix="b")])
    evaluator.process([BaseDataElement(label=1), 5], "batch")
    seen = evaluator.evaluate(1)
    assert seen == {"seen": [("batch", [{"label": 1}, 5])], "b/seen": seen["seen"]}


def test_two_metrics_of_one_name_are_rejected():
    evaluator = Evaluator([Scripted({"acc": 1}), Scripted({"acc": 2})])
    evaluator.process([1])
    with pytest.raises(ValueError, match="same metric name acc.*different prefixes"):
        evaluator.evaluate(1)


def test_the_dataset_describes_itself_to_every_metric():
    evaluator = Evaluator([Count(), Scripted({})])
    evaluator.dataset_meta = {"classes": 3}
    assert [metric.dataset_meta for metric in evaluator.metrics] == [{"classes": 3}] * 2
    assert evaluator.dataset_meta == {"classes": 3}


@pytest.mark.parametrize(("chunk", "sizes"), [(1, [1, 1, 1]), (2, [2, 1]), (5, [3])])
def test_predictions_of_earlier_are_evaluated_in_chunks(chunk, sizes):
    evaluator = Evaluator(ToySeen())
    found = evaluator.offline_evaluate([1, 2, 3], data="abc", chunk_size=chunk)["seen"]
    assert [len(samples) for _, samples in found] == sizes
    assert "".join(data for data, _ in found) == "abc"
    assert Evaluator(Count()).offline_evaluate([1, 2]) == {"count/samples": 2}


def test_a_metric_is_found_with_or_without_its_prefix():
    metrics = {"a/acc": 1, "b/acc": 2, "a/b/f1": 3}
    assert get_metric_value("a/acc", metrics) == 1
    assert get_metric_value("f1", metrics) == 3
    with pytest.raises(ValueError, match=r"matches \['a/acc', 'b/acc'\]"):
        get_metric_value("acc", metrics)
    with pytest.raises(ValueError, match="matches no metric"):
        get_metric_value("zebra", metrics)
    with pytest.raises(ValueError, match="\"a/ac\" is not a metric.*'a/acc'"):
        get_metric_value("a/ac", metrics)
