import random

import torch

from hookloop.data.position.indices import PassStart
from hookloop.data.random.states import seed_all
from hookloop.data.ranks.cut import Cut
from hookloop.data.ranks.place import Share
from hookloop.data.reading.plain import SharedPasses


def drawing(count=5):
    for _ in range(count):
        yield torch.tensor([random.randrange(1000) for _ in range(4)])


def read(passes, start, *, drawn, **options):
    """Read a pass while something else draws random numbers."""
    seed_all(1)
    batches = passes.begin(drawing, start, **options)
    seed_all(drawn)
    found = []
    for batch in batches:
        found.append(batch.tolist())
        random.random()
    return found


def make(rank, size=2, **options):
    cut = Cut(rank, size)
    options = {"is_shard": False, "has_stream": True} | options
    return SharedPasses(cut, **options), cut


def test_all_ranks_read_the_same_whatever_they_draw_themselves():
    whole = read(make(0, 1)[0], PassStart(key=7), drawn=5)
    parts = [read(make(rank)[0], PassStart(key=7), drawn=rank + 10) for rank in (0, 1)]
    assert [first + second for first, second in zip(*parts, strict=True)] == whole
    other = read(make(0, 1)[0], PassStart(key=8), drawn=5)
    assert other[0] == whole[0] and other[1:] != whole[1:]


def test_a_pass_in_the_middle_is_the_rest_of_the_whole():
    whole = read(make(0)[0], PassStart(key=7), drawn=5)
    assert read(make(0)[0], PassStart(3, key=7), drawn=6) == whole[3:]


def test_shares_are_queued_when_batches_are_taken():
    passes, cut = make(1)
    batches = passes.begin(drawing, PassStart(2))
    assert not cut.shares
    next(batches)
    assert list(cut.shares) == [Share(2, 4)]
    list(batches)
    assert len(cut.shares) == 3
    passes.begin(drawing, PassStart())
    assert not cut.shares


def test_the_order_is_drawn_at_once():
    begun = []

    def batches():
        begun.append(1)
        yield [1, 2]

    make(0)[0].begin(batches, PassStart())
    assert begun == [1]


def test_shards_are_taken_whole_with_other_random_numbers():
    found = [read(make(rank, is_shard=True)[0], PassStart(key=7), drawn=5) for rank in (0, 1)]
    assert found[0] != found[1]
    assert found[0] == read(make(0, is_shard=True)[0], PassStart(key=7), drawn=9)
    assert all(len(batch) == 4 for batch in found[0])


def test_a_stream_is_saved_for_data_that_continues_by_itself():
    passes, _ = make(0)
    seed_all(1)
    source = drawing()
    batches = passes.begin(lambda: source, PassStart(key=7))
    next(batches), next(batches)
    state = passes.state_dict()
    rest = [batch.tolist() for batch in batches]

    again, _ = make(0)
    again.load_state_dict(state)
    continued = again.begin(lambda: drawing(3), PassStart(2, key=7), skips=False)
    assert [batch.tolist() for batch in continued] == rest


def test_data_that_draws_nothing_has_no_stream():
    passes, _ = make(0, has_stream=False)
    assert list(passes.begin(lambda: iter([[1, 2], [3, 4]]), PassStart())) == [[1], [3]]
    assert passes.state_dict() is None
