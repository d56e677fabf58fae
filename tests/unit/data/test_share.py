import pytest
import torch

from hookloop.data.ranks.cut import Cut
from hookloop.data.ranks.place import Place, Share, losses_of_streams, zip_shares
from hookloop.errors import ModelError


def add_losses(output, place):
    return sum(losses_of_streams(output, place).values())


def shares(ranks, **totals):
    """Return the shares of all ranks of batches with so many samples."""
    found = []
    for rank in range(ranks):
        cut = Cut(rank, ranks)
        for total in totals.values():
            cut.indices(list(range(total)))
        found.append(zip_shares(dict(zip(totals, cut.shares, strict=True)), next(iter(totals))))
    return found


def test_of_one_stream_the_samples_are_the_weight():
    assert Share(3, 8).weight == 3
    assert Share(0, 8).weight == 0


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("totals", [{"a": 8, "b": 6}, {"a": 1, "b": 5}, {"a": 3, "b": 3, "c": 7}])
def test_weights_of_all_ranks_add_up_to_the_whole(ranks, totals):
    of_ranks = shares(ranks, **totals)
    assert sum(one.weight for one in of_ranks) == pytest.approx(totals["a"], rel=1e-12)


def test_streams_that_are_cut_alike_count_as_one_stream():
    for share in shares(3, a=9, b=18, c=27):
        assert share.weight == share.own == 3


@pytest.mark.parametrize(
    ("totals", "is_even"),
    [((8, 4), True), ((9, 9), True), ((9, 18), False), ((4, 2), False), ((8, 7), False)],
)
def test_whether_streams_are_cut_in_the_same_proportions(totals, is_even):
    of_ranks = shares(4, a=totals[0], b=totals[1])
    parts = [{one.own / one.total for one in share.streams.values()} for share in of_ranks]
    assert all(len(part) == 1 for part in parts) is is_even
    assert all(share.is_even(4) is is_even for share in of_ranks)


def test_data_of_its_own_counts_by_its_samples():
    share = zip_shares({"a": Share(2, None), "b": Share(3, 6)}, "a")
    assert (share.own, share.total, share.weight) == (2, None, 5)
    assert share.is_even(2)  # As far as is known.
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    assert add_losses({"loss": {"a": one, "b": two}}, Place(1, *share)) == 3.0


@pytest.mark.parametrize("ranks", [2, 3])
def test_each_loss_counts_by_the_samples_of_its_stream(ranks):
    samples = {"a": torch.tensor([5.0]), "b": torch.tensor([1.0, 2.0, 3.0, 4.0, 8.0])}
    total = torch.tensor(0.0)
    for rank, share in enumerate(shares(ranks, a=1, b=5)):
        losses = {name: Cut(rank, ranks).batch(values).mean() for name, values in samples.items()}
        total += share.weight * add_losses({"loss": losses}, Place(1, *share))
    assert total / share.total == pytest.approx(sum(one.mean() for one in samples.values()))


def test_a_loss_that_does_not_count_may_be_nan_and_has_a_gradient_of_zero():
    share = zip_shares({"a": Share(0, 1), "b": Share(2, 4)}, "a")
    one = torch.tensor(float("nan"), requires_grad=True)
    loss = add_losses({"loss": {"a": one, "b": torch.tensor(2.0)}}, Place(1, *share))
    loss.backward()
    assert loss.isfinite() and one.grad == 0


def test_in_one_process_losses_are_added():
    losses = {"class": torch.tensor(1.0), "box": torch.tensor(2.0)}
    assert add_losses({"loss": losses}, None) == 3.0
    assert add_losses({"loss": losses}, Place(1, 2, 4)) == 3.0  # Of one stream.


def test_each_stream_needs_a_loss_and_no_weight():
    place, one = Place(1, *zip_shares({"a": Share(1, 2), "b": Share(1, 2)}, "a")), torch.ones(())
    with pytest.raises(ModelError, match="losses of a, and the streams are a, b: return one loss"):
        add_losses({"loss": {"a": one}}, place)
    with pytest.raises(ModelError, match="'weight'"):
        add_losses({"loss": {"a": one, "b": one}, "weight": 3}, place)


@pytest.mark.parametrize("losses", [{"a": torch.ones(()), "b": None}, {"a": 1.5}, {}])
def test_what_is_not_a_loss_of_a_stream_is_rejected(losses):
    with pytest.raises(ModelError, match="return"):
        losses_of_streams({"loss": losses}, None)
