"""A data set made from the entries of a config."""

import logging

import pytest

from hookloop_dialects.emloop.datasets import BaseDataset


class Mine(BaseDataset):
    def _configure_dataset(self, output_dir=None, rate=0.0, **kwargs):
        self.found = (output_dir, rate, kwargs)

    def train_stream(self):
        yield {"x": [1, 2], "y": [[0.5], [1.5]]}

    def empty_stream(self):
        return []


def test_the_entries_of_the_config_are_arguments():
    assert Mine("{output_dir: out, rate: 1e-3, size: 4}").found == ("out", 0.001, {"size": 4})
    assert Mine("").found == (None, 0.0, {})
    with pytest.raises(TypeError, match="abstract"):
        BaseDataset("")


def test_the_streams_are_described(caplog):
    with caplog.at_level(logging.INFO):
        Mine("").stream_info()
    assert caplog.messages == [
        "empty_stream", "train_stream", "\tx  int64  (2,)", "\ty  float64  (2, 1)",
    ]  # fmt: skip
