"""``accumulate="auto"`` on many ranks: if one runs out of memory, all make the iteration again."""

import pytest
import torch
from tests.integration.many_ranks import KillAt, data, distance, is_equal, train
from tests.ranks import each_rank, on_ranks
from torch.utils.data import DataLoader

pytestmark = pytest.mark.slow


class Limited(torch.nn.Module):
    """Has room for so many samples on one rank, in forward or in backward."""

    def __init__(self, room=100, *, rank=1, where="forward", begin=0, dropout=0.0, spare=False):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(4, 16), torch.nn.Linear(16, 1)
        self.dropout = torch.nn.Dropout(dropout)
        self.room, self.rank, self.where, self.begin = room, rank, where, begin
        self.sizes = []
        self.register_buffer("calls", torch.zeros(()))
        if spare:
            self.spare = torch.nn.Linear(2, 2)

    def forward(self, inputs):
        output = self.outer(torch.tanh(self.dropout(self.inner(inputs))))
        if not self.training:
            return output
        self.calls += 1
        self.sizes.append(len(inputs))
        is_here = own_rank() == self.rank and len(self.sizes) > self.begin
        if is_here and len(inputs) > self.room:
            if self.where == "forward":
                raise torch.OutOfMemoryError("no room")
            output.register_hook(self.fail)
        return output

    def fail(self, gradient):
        raise torch.OutOfMemoryError("no room")


def own_rank():
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def work(run_dir, model, **changes):
    seen = []

    def make():
        seen.append(model())
        return seen[0]

    settings = {"accumulate": "auto", "clip_norm": 1.0, "save_every": 3, "max_epochs": 1}
    result = train(run_dir, model=make, **{"samples": 51, **settings, **changes})
    result["sizes"], result["calls"] = seen[0].sizes, int(result["weights"].pop("calls"))
    return result


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_the_update_is_that_of_one_process_with_room(tmp_path, where, size):
    alone = work(tmp_path / "alone", Limited, accumulate=1)
    limited = lambda: Limited(1, where=where)  # noqa: E731
    together = on_ranks(lambda: work(tmp_path / "run", limited), size)
    for result in together:
        assert is_equal(result, together[0])
        assert result["metrics"] == together[0]["metrics"]
        assert 1 in result["sizes"]  # Also on the ranks that had room.
    assert distance(alone, together[0]) < 1e-6
    for name, value in alone["metrics"].items():
        assert together[0]["metrics"][name] == pytest.approx(value, rel=1e-5)
    log = (tmp_path / "run" / "run.log").read_text()
    parts = {2: 4, 3: 4}[size]
    assert log.count("Iteration 1 ran out of memory on a rank and was made again on all") == 1
    assert f"split into {parts} parts" in log


def test_nothing_changes_where_memory_suffices(tmp_path):
    def both():
        options = {"dropout": 0.3}
        plain = work(tmp_path / "plain", lambda: Limited(**options), accumulate=1)
        return plain, work(tmp_path / "auto", lambda: Limited(**options))

    for plain, auto in on_ranks(both, 3):
        assert distance(plain, auto) < 1e-6
        assert (plain["sizes"], plain["calls"]) == (auto["sizes"], auto["calls"])


def test_random_numbers_and_buffers_are_restored_on_all_ranks(tmp_path):
    def both(name, where):
        model = lambda: Limited(2, dropout=0.3, where=where)  # noqa: E731
        return on_ranks(lambda: work(tmp_path / name, model, samples=48), 2)

    for one, other in zip(both("early", "forward"), both("late", "backward"), strict=True):
        assert is_equal(one, other) and one["calls"] == other["calls"]
        assert one["calls"] == len(one["sizes"]) - 1  # The iteration that failed does not count.


def test_parameters_that_a_step_leaves_out_are_averaged_too(tmp_path):
    def step(run, batch):
        return torch.nn.functional.mse_loss(run.model(batch[0]), batch[1])

    changes = {"step": step, "loss": None}
    alone = work(tmp_path / "alone", lambda: Limited(spare=True), accumulate=1, **changes)
    together = on_ranks(
        lambda: work(tmp_path / "run", lambda: Limited(2, spare=True), **changes), 3
    )
    assert all(is_equal(result, together[0]) for result in together)
    assert distance(alone, together[0]) < 1e-6


def test_killed_it_continues_with_the_same_parts_and_bits(tmp_path):
    def run(name, *hooks):
        model = lambda: Limited(2, begin=2, dropout=0.3)  # noqa: E731
        return each_rank(lambda: work(tmp_path / name, model, max_epochs=2, hooks=hooks), 3)

    whole = run("whole")
    run("cut", KillAt("before_update", 8, [0]))
    continued = run("cut")
    for before, after in zip(whole, continued, strict=True):
        assert is_equal(before.value, after.value), after.error
        assert after.value["sizes"] == before.value["sizes"]  # Split from the start.


def test_a_sample_that_does_not_fit_ends_all_ranks(tmp_path):
    first, second = each_rank(lambda: work(tmp_path / "run", lambda: Limited(0)), 2)
    assert "a single sample does not fit into memory, so no split helps" in second.error
    assert "PeerFailed: rank 1 failed in iteration 0" in first.error


def test_batches_of_unequal_parts_and_several_microbatches(tmp_path):
    # Seven samples for three ranks, and one at the end: two ranks have no part of it.
    changes = {"train_data": DataLoader(data(29), batch_size=7, shuffle=True)}
    alone = work(tmp_path / "alone", Limited, accumulate=1, **changes)
    together = on_ranks(lambda: work(tmp_path / "run", lambda: Limited(2, rank=0), **changes), 3)
    assert all(is_equal(result, together[0]) for result in together)
    assert distance(alone, together[0]) < 1e-6
