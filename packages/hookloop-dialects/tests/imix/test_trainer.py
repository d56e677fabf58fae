"""The run as iMIX's hooks see it."""

import pytest
import torch
from tests.imix.tracing import train
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError
from hookloop_dialects.imix import EngineFacade, HookBase
from hookloop_dialects.imix.trainer import Output


def test_the_engine_offers_what_hooks_of_imix_touch(tmp_path):
    class Look(HookBase):
        def after_train_iter(self):
            trainer = self.trainer
            seen.update(
                start=(trainer.start_iter, trainer.start_epoch),
                limits=(trainer.max_iter, trainer.max_epoch, trainer.by_epoch),
                rate=trainer.optimizer.param_groups[0]["lr"],
                output=sorted(trainer.output),
                model_output=trainer.model_output.shape,
                data=len(trainer.data_loader),
                work_dir=trainer.work_dir,
                steps=trainer.gradient_accumulation_steps,
                hooks=trainer._hooks,
                cfg=trainer.cfg.log_config.period,
            )

    seen, hook = {}, Look()
    train(tmp_path, hook, setup={"config": {"log_config": {"period": 3}}})
    assert seen["start"] == (0, 0) and seen["limits"] == (3, 1, True)
    assert (seen["rate"], seen["output"], seen["data"]) == (0.05, ["loss"], 3)
    assert (seen["work_dir"], seen["hooks"], seen["cfg"]) == (str(tmp_path / "run"), [hook], 3)


def test_an_attribute_that_is_not_offered_names_hook_attribute_and_a_way(tmp_path):
    class Ask(HookBase):
        def before_train(self):
            self.trainer.loss_fn  # noqa: B018 - the question itself

    with pytest.raises(HookError, match=r"'ask' asks for trainer.loss_fn.*Trainer's loss="):
        train(tmp_path, Ask())


@pytest.mark.parametrize("method", ["step", "zero_grad"])
def test_a_hook_that_is_not_known_to_make_the_update_cannot(method, tmp_path):
    class Hidden(HookBase):
        def before_train_iter(self):
            getattr(self.trainer.optimizer, method)()

    match = rf"'hidden' calls trainer.optimizer.{method}.*makes_update = True"
    with pytest.raises(HookError, match=match):
        train(tmp_path, Hidden())


def test_before_the_training_a_scheduler_can_be_made_from_the_optimizer(tmp_path):
    class Schedule(HookBase):
        def before_train(self):
            self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.trainer.optimizer, 0.5)

        def after_train_iter(self):
            self.scheduler.step()

    trainer = train(tmp_path, Schedule())
    assert trainer.run.optimizer.param_groups[0]["lr"] == pytest.approx(0.05 / 8)


def test_values_of_the_optimizer_can_be_read_and_set():
    run = make_trainer().run
    optimizer = EngineFacade(run).optimizer
    optimizer.param_groups[0]["lr"] = 0.5
    optimizer.mine = 3
    assert run.optimizer.param_groups[0]["lr"] == 0.5
    assert run.optimizer.mine == 3
    assert optimizer.state_dict() == run.optimizer.state_dict()


def test_an_output_is_a_copy_whose_loss_takes_effect():
    run = make_trainer().run
    run.output, run.loss = {"score": 1}, torch.tensor(2.0)
    output = Output(run)
    assert output == {"score": 1, "loss": torch.tensor(2.0)}
    output["loss"] = torch.tensor(3.0)
    output["score"] = 5
    assert run.loss == 3 and run.output == {"score": 5}
    run.output, run.loss = torch.ones(2), None
    assert Output(run) == {}


@pytest.mark.parametrize(
    ("limits", "by_epoch", "max_epoch", "max_iter"),
    [
        ({"max_epochs": 2}, True, 2, 6),
        ({"max_iters": 4}, False, None, 4),
        ({"max_epochs": 2, "max_iters": 4}, True, 2, 4),
    ],
)
def test_limits_decide_between_epochs_and_iterations(limits, by_epoch, max_epoch, max_iter):
    engine = EngineFacade(make_trainer(**limits).run)
    assert (engine.by_epoch, engine.max_epoch, engine.max_iter) == (by_epoch, max_epoch, max_iter)


def test_without_training_data_there_is_no_loader():
    trainer = make_trainer(data={"test": make_data(4)})
    assert len(EngineFacade(trainer.run).data_loader) == 3
    trainer.run.train_data = None
    assert EngineFacade(trainer.run).data_loader is None


def test_values_of_a_config_files_own_are_found(tmp_path):
    class Look(HookBase):
        def before_train(self):
            seen.append((self.trainer.cfg.log_config.period, self.trainer.cfg.max_epochs))

    seen = []
    train(
        tmp_path, Look(), setup={"config": {"vars": {"log_config": {"period": 3}}, "max_epochs": 1}}
    )
    assert seen == [(3, 1)]
