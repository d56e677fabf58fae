import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop import Hook
from hookloop.errors import ModelError, SkippedUpdateError


def loss_of(run, batch):
    return (run.model(batch[0]) - batch[1]).square().mean()


def two_optimizers(model):
    return {
        "one": torch.optim.SGD(model[0].parameters(), lr=0.1),
        "two": torch.optim.SGD(model[2].parameters(), lr=0.1),
    }


def train(step, **how):
    """Train for three iterations per epoch."""
    trainer = make_trainer(loss=None, step=step, **how)
    return trainer, trainer.train()


def forgets_return(run, batch):
    loss_of(run, batch)


@pytest.mark.parametrize("how", [{}, {"accumulate": 2}, {"accumulate": "auto"}])
@pytest.mark.parametrize("limit", [{"max_epochs": 20}, {"max_epochs": 1}, {"max_iters": 2}])
def test_a_step_without_return_fails(how, limit):
    with pytest.raises(ModelError, match=r"run.skip_update\(\)"):
        train(forgets_return, **how, **limit)


def test_it_fails_soon():
    calls = []

    def step(run, batch):
        calls.append(run.progress.iter)

    with pytest.raises(ModelError, match="first 10 iterations"):
        train(step, train_data=make_data(400), max_epochs=1)
    assert calls == list(range(10))


@pytest.mark.parametrize("loss", ["of another model", "detached"])
def test_a_loss_that_trains_nothing_of_the_optimizer_fails(loss):
    other = make_model()

    def step(run, batch):
        if loss == "detached":
            return loss_of(run, batch).detach().requires_grad_()
        return (other(batch[0]) - batch[1]).square().mean()

    with pytest.raises(ModelError, match=r"no gradient to any parameter of optimizer="):
        train(step, max_epochs=20)


def test_one_of_two_losses_without_a_gradient_fails():
    def of_the_other(run, batch):
        return run.model[0](batch[0]).square().mean()

    model, steps = make_model(), {"one": loss_of, "two": of_the_other}
    with pytest.raises(ModelError, match="'two'"):
        train(steps, model=model, optimizer=two_optimizers(model), max_epochs=8)


@pytest.mark.parametrize("accumulate", [1, 3, "auto"])
def test_single_losses_may_have_no_gradient(accumulate):
    """As where a batch has nothing to learn from; a hook may also keep the gradients for itself."""

    def step(run, batch):
        if run.progress.iter < 2:
            return torch.zeros((), requires_grad=True)
        return loss_of(run, batch)

    class Keep(Hook):
        takes_part_in_training = True

        def after_backward(self, run):
            if run.progress.iter >= 2:
                self.kept = [one.grad for one in run.model.parameters()]
                run.optimizer.zero_grad()

        def before_update(self, run):
            if run.progress.iter >= 2:
                for one, kept in zip(run.model.parameters(), self.kept, strict=True):
                    one.grad = kept

    trainer, _ = train(step, accumulate=accumulate, max_epochs=4, hooks=[Keep()])
    assert trainer.run.progress.iter == trainer.run.progress.total_iters


def test_what_says_that_it_skips_may_skip_everything():
    def step(run, batch):
        run.skip_update()

    trainer, outcome = train(step, max_epochs=8)
    assert outcome.status == "completed"
    assert trainer.run.progress.iter == 24
    assert "train/loss" not in outcome.metrics


@pytest.mark.parametrize("accumulate", [1, 3, "auto"])
def test_what_follows_a_skip_is_not_done(accumulate):
    def step(run, batch):
        if run.progress.iter % 2:
            return run.skip_update()
        return loss_of(run, batch)

    def with_none(run, batch):
        return None if run.progress.iter % 2 else loss_of(run, batch)

    ends = []
    for one in (step, with_none):
        trainer, _ = train(one, max_epochs=4, accumulate=accumulate)
        ends.append([p.tolist() for p in trainer.run.model.parameters()])
    assert ends[0] == ends[1]


def test_one_of_two_may_be_trained_less_often():
    def seldom(run, batch):
        return None if run.progress.iter % 5 else loss_of(run, batch)

    model = make_model()
    _, outcome = train(
        {"one": loss_of, "two": seldom},
        model=model,
        optimizer=two_optimizers(model),
        max_epochs=8,
    )
    assert {"train/one_loss", "train/two_loss"} <= set(outcome.metrics)


def test_one_of_two_that_is_never_trained_fails():
    model = make_model()
    with pytest.raises(ModelError, match=r"step\['two'\].*None"):
        train(
            {"one": loss_of, "two": forgets_return},
            model=model,
            optimizer=two_optimizers(model),
            max_epochs=8,
        )


def test_a_later_epoch_without_an_update_fails():
    def step(run, batch):
        return loss_of(run, batch) if run.progress.epoch < 2 else None

    with pytest.raises(ModelError, match="through a whole epoch"):
        train(step, max_epochs=20)


def test_the_iterations_before_a_resume_count_as_trained(tmp_path):
    def step(run, batch):
        return loss_of(run, batch) if run.progress.iter < 4 else None

    from hookloop.hooks import SaveCheckpoint

    train(step, max_iters=4, run_dir=tmp_path, hooks=[SaveCheckpoint(1)])
    _, outcome = train(step, max_iters=6, run_dir=tmp_path, hooks=[SaveCheckpoint(1)], resume=True)
    assert outcome.status == "completed"


def test_updates_that_a_hook_drops_are_updates():
    class Drop(Hook):
        takes_part_in_training = True

        def before_update(self, run):
            for parameter in run.model.parameters():
                parameter.grad = None

    _, outcome = train(loss_of, max_epochs=8, hooks=[Drop()])
    assert outcome.status == "completed"


def test_a_validation_may_be_skipped_without_a_word():
    def step(run, batch):
        if run.phase == "val":
            run.skip_update()
        return loss_of(run, batch)

    _, outcome = train(step, val_data=make_data(4), max_epochs=2)
    assert "val/loss" not in outcome.metrics


def test_only_a_step_can_skip():
    class Skip(Hook):
        def after_train_iter(self, run):
            run.skip_update()

    with pytest.raises(SkippedUpdateError, match="outside of step="):
        train(loss_of, hooks=[Skip()])
