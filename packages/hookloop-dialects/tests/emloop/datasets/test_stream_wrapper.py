"""A stream that can be read again and again."""

from hookloop_dialects.emloop.datasets import StreamWrapper


def make(**options):
    return StreamWrapper(lambda: [{"x": [number]} for number in range(3)], **options)


def read(stream):
    with stream as batches:
        return [batch["x"][0] for batch in batches]


def test_a_stream_begins_again_at_its_end():
    stream = make(name="train", buffer_size=4)
    assert stream.name == "train"
    with stream.allow_buffering:
        assert read(stream) == read(stream) == [0, 1, 2]


def test_epochs_of_a_fixed_size_go_over_the_end():
    stream = make(epoch_size=2)
    assert [read(stream) for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]


def test_a_stream_without_batches_is_empty():
    assert list(StreamWrapper(list)) == list(StreamWrapper(list, epoch_size=3)) == []
