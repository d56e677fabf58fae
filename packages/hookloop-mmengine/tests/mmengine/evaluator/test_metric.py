"""The base of metrics, and the metric that writes predictions."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
import torch

from hookloop_mmengine.evaluator import BaseMetric, DumpResults
from hookloop_mmengine.structures import BaseDataElement


class Mean(BaseMetric):
    def process(self, data_batch, data_samples):
        self.results += data_samples

    def compute_metrics(self, results):
        return {"mean": sum(results) / max(len(results), 1)}


def test_results_of_all_batches_are_computed_at_the_end():
    metric = Mean()
    metric.process(None, [1, 2])
    metric.process(None, [6])
    assert metric.evaluate(3) == {"mean": 3}
    assert metric.results == []


def test_results_beyond_the_data_are_dropped():
    metric = Mean()
    metric.process(None, [1, 3, 99])
    assert metric.evaluate(2) == {"mean": 2}


@pytest.mark.parametrize(
    ("default", "prefix", "name"),
    [(None, None, "mean"), ("own", None, "own/mean"), ("own", "given", "given/mean")],
)
def test_a_prefix_goes_before_the_name(default, prefix, name):
    class Prefixed(Mean):
        default_prefix = default

    metric = Prefixed(prefix=prefix)
    metric.process(None, [1])
    assert metric.evaluate(1) == {name: 1}


def test_empty_results_are_a_warning(caplog):
    assert Mean().evaluate(3) == {"mean": 0}
    assert "Mean got empty `self.results`" in caplog.text


def test_the_dataset_describes_itself():
    metric = Mean()
    metric.dataset_meta = {"classes": ("a",)}
    assert metric.dataset_meta == {"classes": ("a",)}


def test_both_methods_are_needed():
    with pytest.raises(TypeError, match="abstract"):
        BaseMetric()


def test_a_directory_is_for_the_cpu_only():
    Mean(collect_dir="somewhere")
    with pytest.raises(ValueError, match="`collect_dir` could only be configured"):
        Mean(collect_device="gpu", collect_dir="somewhere")


def test_predictions_are_written_as_plain_data(tmp_path):
    path = tmp_path / "new" / "out.pkl"
    metric = DumpResults(str(path))
    sample = BaseDataElement(metainfo={"id": 1}, score=torch.ones(2)).to_dict()
    metric.process(None, [sample, {"score": 3}])
    assert metric.evaluate(2) == {}
    first, second = pickle.loads(path.read_bytes())
    assert first["id"] == 1
    assert first["score"].tolist() == [1, 1]
    assert second == {"score": 3}


class Pair(NamedTuple):
    low: object
    high: object


def test_the_types_of_predictions_are_kept(tmp_path):
    metric = DumpResults(str(tmp_path / "out.pkl"))
    element = BaseDataElement(score=torch.ones(1, requires_grad=True))
    metric.process(None, [element, Pair(np.arange(2), [torch.zeros(1)])])
    metric.evaluate(2)
    first, second = pickle.loads((tmp_path / "out.pkl").read_bytes())
    assert not first["score"].requires_grad
    assert isinstance(second, Pair)
    assert second.low.tolist() == [0, 1]


def test_the_file_of_predictions_is_a_pkl():
    with pytest.raises(ValueError, match="The output file must be a pkl file"):
        DumpResults("out.json")
