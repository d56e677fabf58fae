import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record, weights

from hookloop.errors import HookError
from hookloop.hooks import FreezeParameters, SaveCheckpoint


def changed(model, before):
    return {
        name for name, value in model.state_dict().items() if not torch.equal(value, before[name])
    }


@pytest.mark.parametrize(("until", "frozen_iters"), [(2, 2), ("1 epoch", 3), (None, 6), (0, 0)])
def test_matching_parameters_stay_until_the_moment(until, frozen_iters, tmp_path):
    model = make_model()
    before = weights(model)
    seen, calls = record(["after_update"], lambda run: "0.weight" not in changed(run.model, before))
    make_trainer(
        model=model,
        hooks=[FreezeParameters("0.*", until=until), seen],
        max_epochs=2,
        run_dir=tmp_path,
    ).train()
    assert [still for _, still in calls] == [True] * frozen_iters + [False] * (6 - frozen_iters)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_what_was_frozen_before_stays_frozen(tmp_path):
    model = make_model()
    model[0].bias.requires_grad_(False)  # By the user, so the hook must not thaw it.
    hooks = [FreezeParameters(["0.weight", "0.bias"], until=1)]
    make_trainer(model=model, hooks=hooks, run_dir=tmp_path).train()
    assert not model[0].bias.requires_grad
    assert model[0].weight.requires_grad


def test_a_resumed_run_thaws_at_the_same_moment(tmp_path):
    def train(run_dir, max_epochs, **options):
        model = make_model()
        make_trainer(
            model=model,
            hooks=[FreezeParameters("0.*", until="3 epochs"), SaveCheckpoint()],
            # Its state depends on the iteration in which a parameter is first updated.
            optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
            max_epochs=max_epochs,
            run_dir=run_dir,
            **options,
        ).train()
        return model

    straight = train(tmp_path / "a", 5)
    train(tmp_path / "b", 2)
    assert_same_bits(train(tmp_path / "b", 5, resume=True), straight)


def test_a_pattern_that_matches_nothing_is_rejected_with_the_nearest_name(tmp_path):
    with pytest.raises(HookError, match="'0.weigth'.*'0.weight'"):
        make_trainer(hooks=[FreezeParameters("0.weigth")], run_dir=tmp_path).train()


def test_freezing_everything_is_rejected(tmp_path):
    model = make_model()
    with pytest.raises(HookError, match="nothing would be trained"):
        make_trainer(model=model, hooks=[FreezeParameters("*")], run_dir=tmp_path).train()
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_wrong_arguments_are_rejected():
    with pytest.raises(HookError, match="at least one pattern"):
        FreezeParameters([])
    with pytest.raises(HookError, match="until counts"):
        FreezeParameters("*", until="3 h")


def normed_model():
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh())
    return torch.nn.Sequential(body, torch.nn.Linear(8, 1))


@pytest.mark.parametrize(("until", "moves"), [(None, 0), (4, 2)])
def test_norms_of_frozen_modules_keep_their_statistics(until, moves, tmp_path):
    model = normed_model()
    hook = FreezeParameters("0.*", until=until, norms="eval")
    seen, calls = record(["after_update"], lambda run: run.model[0][1].training)
    make_trainer(
        model=model, hooks=[hook, seen], val_data=make_data(4), val_every=1, max_epochs=2,
        run_dir=tmp_path,
    ).train()  # fmt: skip
    assert int(model[0][1].num_batches_tracked) == moves
    assert [training for _, training in calls] == [False] * (6 - moves) + [True] * moves


def test_without_it_statistics_change(tmp_path):
    model = normed_model()
    make_trainer(model=model, hooks=[FreezeParameters("0.*")], run_dir=tmp_path).train()
    assert int(model[0][1].num_batches_tracked) == 3
