import logging

import pytest
import torch
from tests.carried import make_loader
from tests.integration.many_ranks import Net, Plain, make
from tests.ranks import on_ranks

from hookloop.data.random.states import GeneratorStates
from hookloop.trainer.state.parts import (
    own_buffers,
    randomness_of_rank,
    restore_buffers,
    restore_workers,
    state_of_ranks,
)


def run_of(model=Net):
    return make(None, resume=None, default_hooks=False, model=model)[0].run


def test_one_process_has_one_entry():
    run = run_of()
    assert list(state_of_ranks(run)) == ["rng"]
    assert len(state_of_ranks(run)["rng"]) == 1


def test_only_buffers_of_numbers_belong_to_a_rank():
    assert set(own_buffers(Net())) == {"norm.running_mean", "norm.running_var"}
    assert own_buffers(Plain()) == {}


def test_buffers_of_other_ranks_are_averaged():
    run = run_of()
    of_ranks = [
        {"norm.running_mean": torch.full((16,), value), "norm.running_var": torch.ones(16)}
        for value in (1.0, 2.0, 6.0)
    ]
    restore_buffers(run, {"buffers": of_ranks}, "file")
    assert torch.equal(run.model.norm.running_mean, torch.full((16,), 3.0))


def test_another_number_of_ranks_is_reported(caplog):
    run = run_of()
    states = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        states.append(GeneratorStates.now().state)
    with caplog.at_level(logging.WARNING, logger="hookloop"):
        found = randomness_of_rank(run, {"rng": states}, "file")
    assert "was made on 2 ranks and continues on 1 rank" in caplog.text
    assert torch.equal(found.state["torch"], states[0]["torch"])


@pytest.mark.slow
def test_each_rank_gets_its_own_back():
    def work():
        run = run_of()
        run._internals.ranks.open(torch.device("cpu"))
        torch.manual_seed(run.world.rank)
        run.model.norm.running_mean.fill_(run.world.rank)
        state = state_of_ranks(run)
        expected = torch.rand(2)
        run.model.norm.running_mean.fill_(9.0)
        restore_buffers(run, state, "file")
        randomness_of_rank(run, state, "file").restore()
        return run.model.norm.running_mean[0].item(), torch.equal(torch.rand(2), expected)

    assert on_ranks(work, 3) == [(0.0, True), (1.0, True), (2.0, True)]


@pytest.mark.slow
def test_the_workers_of_each_rank_continue_where_they_were():
    def work():
        def make_run():
            loader = make_loader(batch_size=4, num_workers=1)
            options = {
                "train_data": loader,
                "data": {"seed_samples": "workers"},
                "default_hooks": False,
            }
            return make(None, resume=None, **options)[0].run

        run = make_run()
        run._internals.ranks.open(torch.device("cpu"))
        groups = run.train_data.groups(1)
        next(groups)
        state = {**state_of_ranks(run), "data": run.train_data.state_dict()}
        expected = next(groups)
        run.train_data.close()
        other = make_run()
        other.train_data.load_state_dict(
            run._internals.ranks.share(state["data"])
        )  # As the first rank saved.
        restore_workers(other, state, "file")
        found = next(other.train_data.groups(1))
        other.train_data.close()
        return found == expected, [sample["noise"] for sample in found[0]]

    (is_same, first), (is_same_too, second) = on_ranks(work, 2)
    assert is_same
    assert is_same_too
    assert first[0] != second[0]
