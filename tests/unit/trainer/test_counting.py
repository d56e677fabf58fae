"""Samples and tokens are counted where somebody asks, and nowhere else."""

import pytest
import torch
from tests.names import iter_file
from tests.ranks import on_ranks
from tests.tiny import make_data, make_model, make_trainer, record

from hookloop.engine.hook import Hook
from hookloop.engine.progress import Progress
from hookloop.errors import DataError, HookError
from hookloop.every import Every, limit
from hookloop.hooks import SaveCheckpoint, StopAfter
from hookloop.trainer.counting import start_counting


class Words(torch.nn.Module):
    """Returns a loss for tokens, and is told nothing else."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 2)

    def forward(self, input_ids):
        return self.embed(input_ids).square().mean()


def words(lengths):
    return [{"input_ids": torch.zeros(2, length, dtype=torch.long)} for length in lengths]


def word_trainer(lengths=(3, 5, 1, 4), **options):
    model = Words()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"train_data": words(lengths), "optimizer": optimizer, "loss": None} | options
    return make_trainer(model=model, **options)


def at(interval, **options):
    """The samples or tokens at which a function acts."""
    trainer, seen = make_trainer(**options), []
    unit = Every.parse(interval).unit

    @trainer.on("after_train_iter", every=interval)
    def note(run):
        seen.append((run.progress.iter, getattr(run.progress, unit)))

    trainer.train()
    return seen


def test_nothing_is_counted_unless_somebody_asks():
    trainer = make_trainer(val_data=make_data(), hooks=[SaveCheckpoint(every=2)])
    trainer.train()
    assert start_counting(trainer._loop, None) is None
    assert (trainer.run.progress.samples, trainer.run.progress.tokens) == (None, None)


@pytest.mark.parametrize(
    ("interval", "seen"),
    [
        ("4 samples", [(1, 4), (2, 8), (3, 11)][:2]),
        ("5 samples", [(2, 8), (3, 11)]),
        ("8 samples", [(2, 8)]),
        ("1 sample", [(1, 4), (2, 8), (3, 11)]),
        ("100 samples", []),
    ],
)
def test_an_interval_is_due_when_the_count_passes_a_multiple(interval, seen):
    assert at(interval, train_data=make_data(11)) == seen
    assert at(interval, train_data=list(make_data(11))) == seen


def test_microbatches_count_with_all_their_samples():
    data = make_data(28, 4)
    assert at("8 samples", train_data=data, accumulate=3) == [
        (1, 12),
        (2, 24),
    ]
    assert at("8 samples", train_data=data, accumulate={0: 1, 2: 4}) == [(2, 8), (3, 24)]
    assert at("8 samples", train_data=data, accumulate="auto")[0] == (2, 8)


def test_tokens_are_the_elements_of_the_ids_or_what_a_function_says():
    trainer = word_trainer(max_epochs=2, hooks=[StopAfter(tokens=20)])
    trainer.train()
    assert (trainer.run.progress.iter, trainer.run.progress.tokens) == (4, 26)
    assert trainer.run.progress.samples is None
    assert trainer.run.outcome.reason == "20 tokens are done"
    own = word_trainer(data={"count_tokens": lambda batch: 7}, hooks=[StopAfter(tokens=20)])
    own.train()
    assert own.run.progress.tokens == 21


def test_batches_without_tokens_are_reported():
    with pytest.raises(DataError, match="Tokens.*count_tokens="):
        make_trainer(hooks=[StopAfter(tokens=20)]).train()
    with pytest.raises(DataError, match=r"count_tokens=.*\(batch\)"):
        make_trainer(data={"count_tokens": lambda: 3})


def test_validations_checkpoints_and_methods_go_by_samples(tmp_path):
    class Sample(Hook):
        counts = ("tokens",)
        seen = ()

        @limit("6 samples")
        def after_train_iter(self, run):
            self.seen += ((run.progress.samples, run.progress.tokens),)

    hook = Sample()
    note, calls = record(["before_val"], lambda run: run.progress.samples)
    hooks = [hook, note, SaveCheckpoint(every="8 samples", keep=None, last=False)]
    trainer = make_trainer(
        hooks=hooks, val_data=make_data(), val_every={"every": "4 samples", "begin": 8},
        data={"count_tokens": len}, run_dir=tmp_path / "run",
    )  # fmt: skip
    trainer.train()
    assert hook.seen == ((8, 4), (12, 6))
    assert calls == [("before_val", 8), ("before_val", 12)]
    assert [path.name for path in (tmp_path / "run").glob("iter_*.pth")] == [iter_file(2)]


def run_to(limit, directory, **options):
    hooks = [SaveCheckpoint(every=None), *options.pop("hooks", [])]
    trainer = make_trainer(
        train_data=make_data(11), max_epochs=2, max_iters=limit, hooks=hooks, run_dir=directory,
        **options,
    )  # fmt: skip
    seen = []

    @trainer.on("after_train_iter", every="6 samples")
    def note(run):
        seen.append((run.progress.iter, run.progress.samples))

    trainer.train()
    return trainer, seen


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
def test_a_resume_acts_in_the_same_iterations(cut, tmp_path):
    _, whole = run_to(6, tmp_path / "whole")
    _, first = run_to(cut, tmp_path / "cut")
    _, second = run_to(6, tmp_path / "cut", resume=True)
    assert first + second == whole == [(2, 8), (4, 15), (5, 19), (6, 22)][: len(whole)]


def test_a_checkpoint_without_counts_is_continued_from_zero(tmp_path):
    make_trainer(
        max_iters=2, hooks=[SaveCheckpoint(every=None)], run_dir=tmp_path / "run",
    ).train()  # fmt: skip
    trainer, _ = run_to(6, tmp_path / "run", resume=True)
    assert trainer.run.progress.samples == 22 - 8
    old = Progress().state_dict()
    del old["samples"], old["tokens"], old["split"]
    progress = Progress(samples=0)
    progress.load_state_dict(old)
    assert (progress.samples, progress.tokens, progress.split) == (0, None, 1)


def test_what_is_not_counted_any_more_is_unknown(tmp_path):
    run_to(2, tmp_path / "run")
    trainer = make_trainer(train_data=make_data(11), resume=True, run_dir=tmp_path / "run")
    trainer.train()
    assert trainer.run.progress.samples is None


def test_what_cannot_be_limited_or_counted_is_rejected():
    class Early(Hook):
        @limit("4 samples")
        def before_train_iter(self, run): ...

    with pytest.raises(HookError, match="after_train_iter"):
        make_trainer(hooks=[Early()]).train()

    class Wrong(Hook):
        counts = ("tokns",)

    with pytest.raises(HookError, match="Wrong.counts.*'tokns'.*'tokens'"):
        make_trainer(hooks=[Wrong()]).train()
    with pytest.raises(ValueError, match="nobody counts samples"):
        Every.parse("4 samples").due(Progress())


def count_on_ranks(directory):
    trainer = make_trainer(
        model=make_model(), train_data=make_data(11),
        data={"count_tokens": lambda batch: len(batch[0])},
        hooks=[StopAfter(samples=10**6, tokens=10**6)], run_dir=directory,
    )  # fmt: skip
    trainer.train()
    return trainer.run.progress.samples, trainer.run.progress.tokens


@pytest.mark.slow
def test_ranks_count_together(tmp_path):
    assert on_ranks(count_on_ranks, 2, tmp_path / "run") == [(11, 11), (11, 11)]
