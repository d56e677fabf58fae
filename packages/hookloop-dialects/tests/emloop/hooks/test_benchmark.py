"""The time per example."""

import logging

from hookloop_dialects.emloop.hooks import Benchmark


def test_the_last_batch_is_left_out(caplog):
    profile = {"eval_batch_train": [2.0, 4.0, 12.0, 99.0], "eval_batch_valid": [1.0]}
    with caplog.at_level(logging.INFO):
        Benchmark(batch_size=2).after_epoch_profile(1, profile, ["train", "valid", "extra"])
    assert caplog.messages == ["train - time per example: mean=3.00000s, median=2.00000s"]
