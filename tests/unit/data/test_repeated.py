"""Workers that each read the whole of an iterable data set are reported."""

import logging

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from hookloop.data.stream import Stream


class Numbers(IterableDataset):
    """Numbers that each worker gives, or that they divide; or one number, again and again."""

    def __init__(self, how="whole"):
        self.how = how

    def __iter__(self):
        worker = get_worker_info()
        for number in range(24):
            if self.how == "divided" and worker and number % worker.num_workers != worker.id:
                continue
            yield torch.tensor(0.0 if self.how == "constant" else float(number))


def read(caplog, how, workers):
    loader = DataLoader(Numbers(how), batch_size=4, num_workers=workers)
    stream = Stream(loader, "train_data")
    with caplog.at_level(logging.WARNING, "hookloop"):
        passes = [sum(1 for _ in stream.read()) for _ in range(2)]
    stream.close()
    return passes, [one.getMessage() for one in caplog.records]


def test_every_sample_that_comes_twice_is_reported_once(caplog):
    passes, (text,) = read(caplog, "whole", 2)
    assert passes == [12, 12]
    assert "Numbers" in text
    assert "get_worker_info" in text


@pytest.mark.parametrize(("how", "workers"), [("divided", 2), ("constant", 2), ("whole", 1)])
def test_nothing_else_is_reported(how, workers, caplog):
    passes, texts = read(caplog, how, workers)
    assert passes[0] == passes[1]
    assert texts == []
