"""The run as Pointrix's hooks see it."""

from types import SimpleNamespace

import pytest
import torch
from tests.pointrix.cloud import Kept, train
from tests.tiny import make_data, make_trainer

from hookloop.errors import HookError
from hookloop_dialects.pointrix import Hook, TrainerFacade
from hookloop_dialects.pointrix.logger import TensorboardWriter
from hookloop_dialects.pointrix.logger.writer import RunWriter
from hookloop_dialects.pointrix.trainer import Group


def test_the_trainer_offers_what_hooks_of_pointrix_touch(tmp_path):
    class Look(Hook):
        def after_train_iter(self, trainner):
            seen.update(
                cfg=(trainner.cfg.max_steps, trainner.cfg.save_step, trainner.cfg["val_interval"]),
                exp_dir=trainner.exp_dir,
                loss=trainner.loss_dict["loss"].ndim,
                names=[group["name"] for group in trainner.optimizer.param_groups],
                size=trainner.val_dataset_size,
                data=len(trainner.datapipeline.validation_dataset),
                gui=trainner.gui,
            )
            trainner.optimizer.param_groups[0]["lr"] = 0.125

    seen = {}
    config = {"trainer": {"val_interval": 2, "save_step": 7}}
    trainer = train(tmp_path, Look(), val_data=make_data(8), setup={"config": config})
    assert seen["cfg"] == (3, 7, 2) and seen["exp_dir"] == tmp_path / "run"
    assert (seen["loss"], seen["names"], seen["size"], seen["data"]) == (0, ["group_0"], 2, 8)
    assert trainer.run.optimizer.param_groups[0]["lr"] == 0.125


def test_an_attribute_that_is_not_offered_names_hook_attribute_and_a_way(tmp_path):
    class Ask(Hook):
        def before_train(self, trainner):
            trainner.renderer  # noqa: B018 - the question itself

    with pytest.raises(HookError, match=r"'ask' asks for trainner.renderer.*Trainer\(step="):
        train(tmp_path, Ask())


def test_call_hook_supports_methods_that_are_no_mount_points(tmp_path):
    class Call(Hook):
        def after_train_iter(self, trainner):
            trainner.call_hook("on_densify", count=3)

    class Listen(Hook):
        def on_densify(self, trainner, count):
            seen.append((trainner.global_step, count))

    class Wrong(Hook):
        def on_densify(self, trainner): ...

    seen = []
    train(tmp_path, Call(), Listen(), max_iters=2)
    assert seen == [(1, 3), (2, 3)]
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'count' in <.*Wrong"):
        make_trainer(hooks=[Call(), Wrong()], run_dir=tmp_path / "other").train()


def test_a_group_without_a_name_is_named_by_its_index_and_torch_does_not_see_it():
    torchs = {"params": [], "lr": 0.1}
    group = Group(torchs, 3)
    assert group["name"] == "group_3" and "name" in list(group) and len(group) == 3
    group["lr"] = 0.5
    del group["params"]
    assert torchs == {"lr": 0.5}
    named = Group({"name": "mine"}, 3)
    assert named["name"] == "mine" and len(named) == 1


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({}, (3, 40000, 10)),
        ({"trainer": {"save_step": 5}}, (3, 5, 10)),
        ({"save_step": 5, "max_steps": 9}, (9, 5, 10)),
        ({"trainer": "text"}, (3, 40000, 10)),
    ],
)
def test_settings_come_from_the_config_or_are_pointrixs_defaults(config, found):
    cfg = TrainerFacade(make_trainer(setup={"config": config}).run).cfg
    assert (cfg.max_steps, cfg.save_step, cfg.bar_upd_interval) == found


def test_the_writer_is_the_configs_or_a_hooks_or_the_runs(tmp_path):
    chosen = {"trainer": {"writer": {"writer_type": "TensorboardWriter"}}}
    run = make_trainer(setup={"config": chosen}, run_dir=tmp_path / "run").run
    assert isinstance(TrainerFacade(run).writer, TensorboardWriter)
    trainner = TrainerFacade(make_trainer().run)
    assert isinstance(trainner.logger, RunWriter)
    assert trainner.writer is trainner.logger
    trainner.writer = kept = Kept()
    assert trainner.logger is kept


def test_the_output_and_the_loss_are_one_dict():
    run = make_trainer().run
    trainner = TrainerFacade(run)
    run.output, run.loss = {"psnr": 3}, torch.tensor(2.0, requires_grad=True)
    assert trainner.loss_dict["psnr"] == 3
    assert not trainner.metric_dict["loss"].requires_grad
    run.output, run.loss = torch.ones(2), None
    assert trainner.loss_dict == {}


@pytest.mark.parametrize(
    ("path", "file"),
    [(None, "run/chkpnt0.pth"), ("mine.pth", "run/mine.pth"), ("other/mine.pth", "other/mine.pth")],
)
def test_a_checkpoint_is_saved_in_the_run_directory_or_under_a_path(path, file, tmp_path):
    class Save(Hook):
        def after_train_iter(self, trainner):
            trainner.global_step = 0
            trainner.save_model(path if path is None or "/" not in path else tmp_path / path)

    (tmp_path / "other").mkdir()
    train(tmp_path, Save(), max_iters=1)
    saved = torch.load(tmp_path / file, weights_only=True)
    assert saved["progress"]["iter"] == 1


def test_the_data_is_found_where_pointrix_has_it():
    trainner = TrainerFacade(make_trainer(val_data=make_data(8)).run)
    assert len(trainner.datapipeline.training_dataset) == 12
    assert len(trainner.datapipeline.validation_dataset) == 8
    assert trainner.val_dataset_size == 2
    assert TrainerFacade(make_trainer().run).datapipeline.validation_dataset is None
    plain = TrainerFacade(make_trainer(train_data=[1, 2]).run)
    assert plain.datapipeline == SimpleNamespace(training_dataset=[1, 2], validation_dataset=None)
