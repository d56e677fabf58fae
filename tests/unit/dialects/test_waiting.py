"""Numbers that stay on their device until a hook reads them."""

import pytest
import torch

from hookloop.dialects.waiting import CHUNK, Waiting


def test_numbers_and_tensors_are_read_in_the_order_they_came():
    waiting = Waiting()
    for value in (2.0, torch.tensor(0.5), 3, torch.tensor(-1.0, dtype=torch.float64)):
        waiting.add(value)
    assert waiting.read() == [2.0, 0.5, 3, -1.0]


def test_reading_forgets_what_was_read():
    waiting = Waiting()
    waiting.add(1.0)
    assert waiting.read() == [1.0]
    assert waiting.read() == []
    waiting.add(2.0)
    assert waiting.read() == [2.0]


def test_a_waiting_loss_does_not_keep_the_graph_of_its_iteration():
    freed = []

    class Note(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.note = type("Note", (), {"__del__": lambda self: freed.append(True)})()
            return value * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    waiting = Waiting()
    loss = Note.apply(torch.ones((), requires_grad=True))
    waiting.add(loss)
    del loss
    assert freed == [True]
    assert waiting.read() == [2.0]


def test_a_chunk_asks_to_be_read():
    waiting = Waiting()
    asked = [waiting.add(float(number)) for number in range(CHUNK)]
    assert asked == [False] * (CHUNK - 1) + [True]
    assert waiting.read() == pytest.approx(range(CHUNK))
    assert not waiting.add(0.0)  # The count begins again.
