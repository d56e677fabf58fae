"""Several streams as one: what is read in which order, and where it continues."""

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from hookloop import Hook
from hookloop.data.mixing.mixture import Mixture, open_train_data
from hookloop.data.random.states import GeneratorStates
from hookloop.data.stream import Stream
from hookloop.engine.progress import Progress
from hookloop.errors import CheckpointError, DataError, ModelError

A, B = [1, 2, 3, 4, 5], [10, 20]
WEIGHTS = {"a": 3, "b": 1}


def mixed(mix, a=A, b=B, *, epoch_iters=None, **options):
    source = Mixture({"a": a, "b": b}, mix, "train_data", **({"seed": 1} | options))
    source.follow(Progress(), (lambda _: None) if epoch_iters is None else None)
    return source


def batches(source, size=1):
    return [batch for group in source.groups(size) for batch in group]


def unsized(values):
    class Unsized:
        def __iter__(self):
            return iter(values)

    return Unsized()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_zip_ends_with_the_shortest(size):
    source = mixed("zip")
    for _ in range(2):
        assert batches(source, size) == [{"a": 1, "b": 10}, {"a": 2, "b": 20}]
    assert source.num_batches == 2


@pytest.mark.parametrize("size", [1, 2, 3])
def test_cycle_ends_with_the_longest(size):
    source = mixed("cycle")
    for _ in range(2):
        read = batches(source, size)
        assert [batch["a"] for batch in read] == A
        assert [batch["b"] for batch in read] == [10, 20, 10, 20, 10]
    assert source.num_batches == 5


@pytest.mark.parametrize("size", [1, 2, 3])
def test_in_order_reads_one_after_the_other(size):
    source = mixed("in order")
    for _ in range(2):
        assert batches(source, size) == [*A, *B]
    assert source.num_batches == 7


@pytest.mark.parametrize("size", [1, 2, 3])
def test_weights_draw_as_many_batches_as_all_streams_have(size):
    source = mixed(WEIGHTS)
    both = [batches(source, size) for _ in range(6)]
    assert {len(read) for read in both} == {7}
    # The streams go on from epoch to epoch, so each gives all its batches in turn.
    flat = [batch for read in both for batch in read]
    of_a = [batch for batch in flat if batch < 10]
    assert of_a == [A[i % 5] for i in range(len(of_a))]
    assert len(of_a) > 24


@pytest.mark.parametrize(("mix", "expected"), [("zip", 2), ("in order", 7)])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_streams_without_a_length(mix, expected, size):
    source = mixed(mix, unsized(A), unsized(B))
    assert source.num_batches is None
    assert [len(batches(source, size)) for _ in range(2)] == [expected, expected]


@pytest.mark.parametrize("mix", ["cycle", WEIGHTS], ids=str)
def test_streams_without_a_length_need_the_length_of_an_epoch(mix):
    with pytest.raises(DataError, match=r"train_data\['b'\].*epoch_iters="):
        mixed(mix, A, unsized(B))
    source = mixed(mix, A, unsized(B), epoch_iters=4)
    assert len(list(source.epoch(1, 4))) == 4


@pytest.mark.parametrize("mix", ["zip", "cycle", "in order", WEIGHTS], ids=str)
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("unknown", [False, True])
def test_a_pass_continues_after_any_group(mix, size, unknown):
    def make():
        b = unsized(B) if unknown and mix in ("zip", "in order") else B
        return mixed(mix, A, b)

    whole = make()
    first, second = list(whole.groups(size)), list(whole.groups(size))
    for taken in range(1, len(first) + 1):
        source = make()
        groups = source.groups(size)
        assert [next(groups) for _ in range(taken)] == first[:taken]
        continued = make()
        continued.load_state_dict(source.state_dict())
        if not unknown:
            assert continued.batches_left == sum(map(len, first[taken:]))
        assert list(continued.groups(size)) == first[taken:]
        assert list(continued.groups(size)) == second


def test_drawing_disturbs_no_generator_and_follows_from_the_seed():
    torch.manual_seed(3)
    before = GeneratorStates.now()
    first = batches(mixed(WEIGHTS, seed=None))
    assert GeneratorStates.now().key(0) == before.key(0)
    assert batches(mixed(WEIGHTS, seed=None)) == first
    torch.manual_seed(4)
    assert batches(mixed(WEIGHTS, seed=2)) == batches(mixed(WEIGHTS, seed=2))


def test_a_hook_may_set_weights_which_last():
    source = mixed(WEIGHTS)
    source.mix = {"a": 0, "b": 1}
    assert set(batches(source)) == {10, 20}
    resumed = mixed(WEIGHTS)
    resumed.load_state_dict(source.state_dict())
    assert resumed.mix == {"a": 0.0, "b": 1.0}
    assert set(batches(resumed)) == {10, 20}


@pytest.mark.parametrize(
    ("mix", "other", "message"),
    [
        ("zip", {"a": 1, "b": 1}, "only weights can be replaced"),
        (WEIGHTS, "zip", "only weights can be replaced"),
        (WEIGHTS, {"a": 1, "c": 1}, "'c', which is not a stream"),
        (WEIGHTS, {"a": {0: 1}, "b": 1}, "has to be a number"),
    ],
)
def test_other_mixtures_cannot_be_set(mix, other, message):
    with pytest.raises(DataError, match=message):
        mixed(mix).mix = other


def test_a_side_pass_leaves_the_mixture_where_it_is():
    source = mixed("cycle")
    groups = source.groups(1)
    next(groups)
    assert len(list(source)) == 5
    assert next(groups) == [{"a": 2, "b": 20}]


def test_each_pass_of_a_stream_sets_the_epoch_of_its_sampler():
    data = TensorDataset(torch.arange(4))
    loaders = [
        DataLoader(data, sampler=DistributedSampler(data, 1, 0, shuffle=True)) for _ in range(2)
    ]
    source = mixed("cycle", [0] * 8, loaders[0])
    read = [int(batch["b"][0]) for batch in batches(source)]
    assert sorted(read[:4]) == sorted(read[4:]) == [0, 1, 2, 3]
    assert read[:4] != read[4:]


def test_an_empty_stream_is_an_error():
    for mix in ("zip", "in order"):
        with pytest.raises(DataError, match=r"train_data\['b'\] is empty"):
            batches(mixed(mix, A, unsized([])))


@pytest.mark.parametrize("mix", ["zip", "in order"])
def test_a_generator_is_read_once(mix):
    source = mixed(mix, A, iter(B))
    assert source.is_one_pass
    assert len(batches(source)) == {"zip": 2, "in order": 7}[mix]


def test_checkpoints_of_one_stream_and_of_several_do_not_mix():
    one, several = Stream(A, "train_data"), mixed("zip")
    with pytest.raises(CheckpointError, match="made with one stream"):
        several.load_state_dict(one.state_dict())
    with pytest.raises(CheckpointError, match="made with several streams"):
        one.load_state_dict(several.state_dict())


def test_a_resume_with_other_streams_warns(caplog):
    other = Mixture({"a": A, "c": B}, "cycle", "train_data")
    other.load_state_dict(mixed("zip").state_dict())
    assert "mixed by cycle, and was by zip; its streams are a, c" in caplog.text


@pytest.mark.parametrize(
    ("data", "mix", "message"),
    [
        ({"a": A, "b": B}, None, "say how to mix them"),
        (A, "zip", "train_data is one"),
        ({}, "zip", "no stream"),
        ({"a": A, "b": 3}, "zip", r"train_data\['b'\] is int"),
        ({"a": A, "b": []}, "zip", r"train_data\['b'\] is empty"),
    ],
)
def test_what_is_rejected(data, mix, message):
    with pytest.raises(DataError, match=message):
        open_train_data(data, mix)


def test_ranks_draw_the_same_streams_and_read_their_parts():
    def of_rank(rank):
        data = TensorDataset(torch.arange(12))
        source = mixed(WEIGHTS, DataLoader(data, 4, shuffle=True), DataLoader(data, 2), seed=None)
        torch.manual_seed(5)
        for part in source.parts():
            part.share_among(rank, 2)
        torch.manual_seed(rank)  # The model draws other numbers on each rank.
        labels, read = [], []
        for group in source.label(source.groups(2), labels.append):
            assert len(source.shares()) == len(group)
            read += [batch[0].tolist() for batch in group]
        return labels, read

    (labels, first), (others, second) = of_rank(0), of_rank(1)
    assert labels == others
    assert all(len(a) == len(b) > 0 for a, b in zip(first, second, strict=True))
    assert not any(set(a) & set(b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("mix", ["zip", "cycle"])
def test_ranks_read_their_part_of_the_batch_of_each_stream(mix):
    def of_rank(rank, size):
        data = [TensorDataset(torch.arange(count)) for count in (7, 10)]
        source = mixed(mix, *(DataLoader(one, 3, shuffle=True) for one in data), seed=None)
        torch.manual_seed(5)
        order = GeneratorStates.now(gpus=False)
        for part in source.parts():
            part.share_among(rank, size, order)
        for part in source.parts():
            part.order.shared = source.parts()[0].order.shared
        read = []
        for group in source.groups(2):
            for batch, share in zip(group, source.shares(), strict=True):
                assert share.own == share.streams["a"].own
                assert share.total == share.streams["a"].total
                read.append({n: batch[n][0].tolist()[: share.streams[n].own] for n in batch})
        return read

    alone, parts = of_rank(0, 1), [of_rank(rank, 3) for rank in range(3)]
    assert len(alone) == {"zip": 3, "cycle": 4}[mix]
    joined = [
        {n: [one for part in of_ranks for one in part[n]] for n in "ab"}
        for of_ranks in zip(*parts, strict=True)
    ]
    assert joined == alone


# --- in a training


class NoteStreams(Hook):
    def __init__(self):
        self.seen, self.between = [], []

    def after_loss(self, run):
        if run.phase == "train":
            self.seen.append((run.stream, run.batch))

    def after_backward(self, run):
        self.seen[-1] = (*self.seen[-1], run.stream)

    def after_train_epoch(self, run):
        self.between.append(run.stream)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_hooks_see_of_which_stream_each_microbatch_is(tmp_path, accumulate):
    note, streams = NoteStreams(), {"a": list(make_data(16)), "b": list(make_data(8))}
    make_trainer(
        hooks=[note],
        train_data=streams,
        data={"mix": WEIGHTS},
        accumulate=accumulate,
        max_epochs=3,
        seed=0,
        run_dir=tmp_path,
        val_data=make_data(4),
    ).train()
    assert len(note.seen) == 18
    assert {stream for stream, _, _ in note.seen} == {"a", "b"}
    for stream, batch, later in note.seen:
        assert any(batch is one for one in streams[stream])
        assert later == stream
    assert note.between == ["train"] * 3


def test_a_zipped_batch_is_of_the_training(tmp_path):
    note, model = NoteStreams(), make_model()

    def step(run, batch):
        pairs = batch.values() if run.phase == "train" else [batch]
        return sum((run.model(x) - y).square().mean() for x, y in pairs)

    make_trainer(
        model=model,
        loss=None,
        step=step,
        hooks=[note],
        train_data={"a": make_data(16), "b": make_data(8)},
        data={"mix": "zip"},
        max_epochs=1,
        run_dir=tmp_path,
    ).train()
    assert [(stream, sorted(batch)) for stream, batch, _ in note.seen] == [
        ("train", ["a", "b"])
    ] * 2


def test_a_loss_cannot_use_a_zipped_batch(tmp_path):
    streams = {"a": make_data(16), "b": make_data(8)}
    with pytest.raises(ModelError, match="mix='zip'.*step="):
        make_trainer(train_data=streams, data={"mix": "zip"}, run_dir=tmp_path)


def loss_of_each(run, batch):
    return {"loss": {name: (run.model(x) - y).square().mean() for name, (x, y) in batch.items()}}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_loss_of_each_stream_is_recorded(accumulate):
    streams = {"a": make_data(16), "b": make_data(8, 2)}
    trainer = make_trainer(
        loss=None,
        step=loss_of_each,
        train_data=streams,
        val_data=streams,
        data={"mix": "zip", "val_mix": "zip"},
        accumulate=accumulate,
        max_epochs=1,
    )
    metrics = trainer.train().metrics
    for prefix in ("train", "train_epoch", "val"):
        parts = metrics[f"{prefix}/a_loss"] + metrics[f"{prefix}/b_loss"]
        assert metrics[f"{prefix}/loss"] == pytest.approx(parts)


def test_a_zipped_validation_reads_until_the_shortest_stream_ends():
    seen = []

    def step(run, batch):
        seen.append((run.phase, run.stream, *batch))
        return loss_of_each(run, batch)

    streams = {"a": make_data(16), "b": make_data(8)}
    trainer = make_trainer(
        loss=None,
        step=step,
        train_data=streams,
        data={"test": streams, "mix": "zip", "val_mix": "zip"},
    )
    trainer.test()
    assert seen == [("test", "test", "a", "b")] * 2


def test_a_step_that_wants_a_mapping_in_validation_is_told_how_to_get_it():
    streams = {"a": make_data(16), "b": make_data(8)}
    trainer = make_trainer(
        loss=None, step=loss_of_each, train_data=streams, data={"mix": "zip"}, val_data=streams
    )
    with pytest.raises(AttributeError) as caught:
        trainer.train()
    assert any("val_mix='zip'" in note for note in caught.value.__notes__)


def test_a_step_whose_stream_is_missing_in_validation_is_told_which():
    streams = {"a": make_data(16), "b": make_data(8)}

    def step(run, batch):
        return (run.model(batch["b"][0]) - batch["b"][1]).square().mean()

    trainer = make_trainer(
        loss=None, step=step, train_data=streams, data={"mix": "zip", "val_mix": "zip"},
        val_data={"a": make_data(16), "c": make_data(8)}, )  # fmt: skip
    with pytest.raises(KeyError) as caught:
        trainer.train()
    assert any("Here it gets one without b" in note for note in caught.value.__notes__)


def test_another_way_to_mix_a_validation_is_rejected():
    with pytest.raises(DataError, match="val_mix='cycle'"):
        make_trainer(val_data={"a": make_data(4)}, data={"val_mix": "cycle"})
