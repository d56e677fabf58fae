"""Where the time of an epoch went."""

import logging

from hookloop_dialects.emloop.hooks import LogProfile


def test_seconds_are_summed_by_activity(caplog):
    profile = {
        "eval_batch_train": [1.0, 2.0],
        "eval_batch_valid": [0.5],
        "read_batch_train": [0.25, 0.25],
        "read_batch_valid": [1.0],
        "after_batch_hooks_train": [0.125],
        "after_epoch_hooks": [2.0],
    }
    with caplog.at_level(logging.INFO):
        LogProfile().after_epoch_profile(1, profile, ["train", "valid", "empty"])
    assert caplog.messages == [
        "\tT train:\t3.000000",
        "\tT valid:\t0.500000",
        "\tT empty:\t0.000000",
        "\tT read data:\t1.500000",
        "\tT hooks:\t2.125000",
    ]
