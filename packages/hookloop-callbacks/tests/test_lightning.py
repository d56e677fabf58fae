"""Callbacks of Lightning in a run: what they see, change, log, keep and may not do."""

import copy
import io

import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop import build, dialects, load
from hookloop.dialects import ForeignAttributeError
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, StopAfter, WriteMetrics
from hookloop.testing import assert_resumes_exactly, tiny_trainer

with dialects.alias("lightning"):
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import EarlyStopping, LambdaCallback
    from lightning.pytorch.loggers import TensorBoardLogger, WandbLogger
    from lightning.pytorch.utilities import rank_zero_only, rank_zero_warn


def at(method, act):
    """A callback with one method, which passes on all its arguments."""
    return type("Foreign", (pl.Callback,), {method: lambda self, *args, **kwargs: act(*args)})()


def train(*callbacks, **options):
    trainer = make_trainer(
        hooks=callbacks, **({"run_dir": "run", "val_data": make_data(8)} | options)
    )
    trainer.train()
    return trainer


def test_the_module_passes_for_the_model_and_writes_through():
    seen = []

    def look(trainer, module):
        seen.append(
            isinstance(module, torch.nn.Sequential) and isinstance(module, pl.LightningModule)
        )
        assert isinstance(trainer, pl.Trainer)
        module.mine = 5
        module.register_buffer("kept", torch.ones(1))
        assert len(module) == 3 and module[0] is module.state_dict.__self__[0]
        assert [type(one) for one in module] == [type(one) for one in trainer.run.model]
        assert type(copy.deepcopy(module)) is torch.nn.Sequential
        assert module and repr(module) == repr(trainer.run.model) and "log" in dir(module)
        assert module(torch.ones(1, 4)).shape == (1, 1)
        assert module.trainer is trainer and module.hparams["width"] == module.hparams.width == 8
        assert module.dtype == torch.float32 and module.automatic_optimization
        del module.mine

    trainer = train(at("on_train_start", look), setup={"config": {"width": 8}})
    assert seen == [True]
    assert "kept" in trainer.run.model.state_dict() and not hasattr(trainer.run.model, "mine")


def test_what_is_logged_reaches_the_writers_and_the_metrics():
    def log(trainer, module, outputs, batch, batch_idx):
        module.log("mine/index", batch_idx)
        trainer.logger.log_metrics({"epoch": trainer.current_epoch, "other": 2.0}, step=1)

    trainer = train(at("on_train_batch_end", log), WriteMetrics(every=1))
    assert trainer.run.metrics.latest("mine/index") == 2.0
    text = (trainer.run.dir / "metrics.jsonl").read_text()
    assert '"mine/index"' in text and '"other"' in text and '"train/epoch"' in text


def test_a_callback_logs_by_itself():
    class Own(pl.Callback):
        def setup(self, trainer, pl_module, stage):
            assert callable(self.log)

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            self.log("mine", float(batch_idx), on_step=True, on_epoch=True)

        def on_validation_epoch_end(self, trainer, pl_module):
            self.log_dict({"val/first": 1.0, "val/second": 2.0})

    callback = Own()
    for number in range(2):  # A second run gets what it logs, not the first.
        trainer = train(callback, run_dir=f"run_{number}", val_data=make_data(8))
        metrics = trainer.run.metrics
        assert (metrics.latest("mine_step"), metrics.latest("mine_epoch")) == (2.0, 1.0)
        assert (metrics.latest("val/first"), metrics.latest("val/second")) == (1.0, 2.0)


def test_pictures_and_texts_of_the_experiment_become_files():
    def draw(trainer, module):
        board = trainer.logger.experiment
        assert isinstance(trainer.logger, TensorBoardLogger)
        assert not isinstance(trainer.logger, WandbLogger)
        board.add_image("picture", torch.rand(3, 8, 8), 1)
        board.add_images("several", torch.rand(2, 3, 8, 8))
        board.add_text("words", "some words")
        board.add_histogram("weights", module[0].weight)
        board.add_scalars("group", {"a": 1.0})
        trainer.logger.log_hyperparams({"lr": 0.1})

    trainer = train(at("on_train_end", draw), WriteMetrics())
    assert len(list((trainer.run.dir / "images").rglob("*.png"))) == 3
    assert trainer.run.metrics.latest("group/a") == 1.0


def test_metrics_have_both_forms_of_their_names():
    seen = []

    def look(trainer, module):
        metrics = trainer.callback_metrics
        assert metrics["val/loss"] is metrics["val_loss"] and "val/loss" in metrics
        assert metrics.get("nothing") is None
        with pytest.raises(KeyError, match="there are: .*val_loss"):
            metrics["val_los"]
        seen.append(isinstance(metrics["val_loss"], torch.Tensor))

    train(at("on_validation_end", look))
    assert seen == [True]


def test_an_attribute_that_is_not_offered_names_the_callback_and_the_hint():
    with pytest.raises(
        ForeignAttributeError, match="'foreign' asks for trainer.predict, .*Trainer.predict"
    ):
        train(at("on_train_start", lambda trainer, module: trainer.predict))
    with pytest.raises(ForeignAttributeError, match="'foreign' asks for trainer.logger.run_id"):
        train(at("on_train_start", lambda trainer, module: trainer.logger.run_id), run_dir="two")


def test_a_checkpoint_is_requested_and_entries_are_kept():
    class Keep(pl.Callback):
        def __init__(self):
            self.loaded = self.epochs = None

        def on_save_checkpoint(self, trainer, pl_module, checkpoint):
            assert set(checkpoint["state_dict"]) == set(pl_module.state_dict())
            checkpoint["mine"] = {"step": checkpoint["global_step"]}

        def on_load_checkpoint(self, trainer, pl_module, checkpoint):
            self.loaded = checkpoint["mine"]["step"]

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if trainer.global_step == 2:
                trainer.save_checkpoint("asked.ckpt")

        def state_dict(self):
            return {"epochs": 7}

        def load_state_dict(self, state_dict):
            self.epochs = state_dict["epochs"]

    trainer = train(Keep(), SaveCheckpoint(), max_epochs=1)
    assert (trainer.run.dir / "asked.ckpt").is_file()
    again = Keep()
    train(again, SaveCheckpoint(), resume=True, max_epochs=2)
    assert (again.loaded, again.epochs) == (3, 7)


def test_a_run_that_is_cut_and_resumed_ends_as_one_that_is_not():
    class Average(pl.Callback):
        mean = None

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            weight = pl_module[0].weight.detach()
            self.mean = weight.clone() if self.mean is None else self.mean.lerp(weight, 0.5)

        def state_dict(self):
            return {"mean": self.mean}

        def load_state_dict(self, state_dict):
            self.mean = state_dict["mean"]

    def make(**options):
        return tiny_trainer(Average(), EarlyStopping("val_loss", patience=1), **options)

    assert_resumes_exactly(make, stop_at=(1, 4))


def test_an_evaluation_has_stages_of_its_own():
    seen = []
    both = LambdaCallback(
        setup=lambda trainer, module, stage: seen.append(stage.value),
        teardown=lambda trainer, module, stage: seen.append((stage.value, trainer.testing)),
    )
    trainer = make_trainer(hooks=[both], val_data=make_data(8), data={"test": make_data(8)})
    trainer.validate()
    trainer.test()
    assert seen == ["validate", ("validate", False), "test", ("test", False)]


def test_it_runs_in_a_loop_of_the_users_own():
    seen = []
    callback = at("on_train_batch_end", lambda *args: seen.append(args[-1]))
    trainer = make_trainer(hooks=[callback], run_dir="run")
    with trainer.loop() as batches:
        for inputs, targets in batches:
            loss = torch.nn.functional.mse_loss(trainer.run.model(inputs), targets)
            trainer.run.optimizer.zero_grad()
            loss.backward()
            trainer.run.optimizer.step()
            trainer.record(loss)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["on_epoch_end"], "use on_train_epoch_end"),
        (["on_sanity_check_start", "on_sanity_check_end"], "would do nothing"),
    ],
)
def test_what_would_never_be_called_is_rejected(methods, message):
    kind = type("Old", (pl.Callback,), dict.fromkeys(methods, lambda self, trainer, module: None))
    with pytest.raises(HookError, match=message):
        make_trainer(hooks=[kind()])


def test_a_wrong_signature_is_rejected_before_the_training():
    class Old(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module): ...

    with pytest.raises(HookError, match="on_train_batch_end has the signature"):
        make_trainer(hooks=[Old()])


def test_several_optimizers_are_rejected_where_it_matters_which():
    model = make_model()
    optimizers = {
        name: torch.optim.SGD(model[index].parameters(), lr=0.1)
        for name, index in (("first", 0), ("last", 2))
    }
    step = {name: lambda run, batch: run.model(batch[0]).mean() for name in optimizers}
    callback = at("on_before_optimizer_step", lambda *args: None)
    with pytest.raises(HookError, match=r"there are 2 \(first, last\)"):
        train(callback, model=model, optimizer=optimizers, step=step)


def test_early_stopping_rejects_a_metric_that_is_not_there():
    with pytest.raises(HookError, match="looks at 'val_acc', which is not there.*val_loss"):
        train(EarlyStopping("val_acc"))
    assert train(EarlyStopping("val_acc", strict=False), run_dir="two").run.progress.epoch == 1


@pytest.mark.parametrize("options", [{"stopping_threshold": 99.0}, {"divergence_threshold": 1e-9}])
def test_early_stopping_ends_at_a_threshold(options):
    trainer = train(EarlyStopping("val_loss", **options), max_epochs=5)
    assert (trainer.run.progress.epoch, trainer.run.outcome.status) == (1, "stopped")


def test_early_stopping_looks_after_epochs_where_nothing_is_validated():
    stop = EarlyStopping("train_loss_epoch", min_delta=99.0, patience=1)
    assert train(stop, val_data=None, max_epochs=5).run.progress.epoch == 2


def test_a_reduction_that_is_unknown_is_rejected():
    def log(trainer, module):
        module.log("x", 1.0, reduce_fx="median")

    with pytest.raises(HookError, match="reduce_fx='median'"):
        train(at("on_train_epoch_end", log))


def test_what_the_alias_lacks_names_the_native_hook():
    with dialects.alias("lightning"):
        with pytest.raises(
            ImportError, match="no ModelCheckpoint. Use hookloop.hooks.SaveCheckpoint"
        ):
            from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: F401
        with pytest.raises(ModuleNotFoundError, match=r"'lightning.pytorch.tuner' is not offered"):
            import lightning.pytorch.tuner  # noqa: F401
    with pytest.raises(HookError, match="Use hookloop.Trainer"):
        pl.Trainer(max_epochs=1)
    with pytest.raises(HookError, match="Trainer\\(model, step="):
        pl.LightningModule()


def test_an_alias_may_be_set_twice():
    with dialects.alias("lightning"):
        import pytorch_lightning

        with dialects.alias("lightning") as second:
            assert "pytorch_lightning" in second.packages
        assert pytorch_lightning.Callback is pl.Callback


def test_only_the_first_rank_acts(monkeypatch):
    act = rank_zero_only(lambda: "done")
    assert act() == "done"
    monkeypatch.setenv("RANK", "1")
    assert act() is None
    monkeypatch.setenv("RANK", "0")
    with pytest.warns(UserWarning, match="careful"):
        rank_zero_warn("careful")


def test_its_state_is_plain():
    stop = EarlyStopping("val_loss")
    trainer = train(stop, StopAfter(epochs=1))
    adapter = next(hook for hook in trainer.run.hooks if hook.name == "early_stopping")
    file = io.BytesIO()
    torch.save(adapter.state_dict(), file)
    file.seek(0)
    assert torch.load(file, weights_only=True)["wait_count"] == 0


CONFIG = """
model: {type: torch.nn.Linear, in_features: 4, out_features: 1}
train_data: {type: "tests.tiny:make_data"}
val_data: {type: "tests.tiny:make_data"}
loss: mse_loss
optimizer: {type: SGD, lr: 0.1}
max_epochs: 5
default_hooks: {console: null}
hooks:
  - {type: lightning.pytorch.callbacks.EarlyStopping, monitor: val_loss, min_delta: 99, patience: 1}
"""


def test_a_config_names_a_callback_by_its_path(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    trainer = build(load("config.yaml"))
    assert trainer.train().status == "stopped"
    assert trainer.run.progress.epoch == 2


def test_a_prediction_calls_its_own_methods_and_gives_its_outputs():
    seen = []

    class Collect(pl.Callback):
        def on_predict_start(self, trainer, pl_module):
            assert trainer.predicting and not trainer.training and not pl_module.training
            seen.append((trainer.num_predict_batches, trainer.predict_dataloaders is data))

        def on_predict_batch_end(
            self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0
        ):
            seen.append((batch_idx, len(outputs)))

    data = make_data(8)
    outputs = make_trainer(hooks=[Collect()], run_dir="run").predict(data)
    assert seen[0] == ([len(data)], True)
    assert [index for index, _ in seen[1:]] == list(range(len(data)))
    assert sum(size for _, size in seen[1:]) == len(outputs)


def test_a_prediction_has_no_metrics():
    log = at("on_predict_end", lambda trainer, module: module.log("mine", 1.0))
    with pytest.raises(HookError, match="'foreign' logs 'mine' in a prediction"):
        make_trainer(hooks=[log], run_dir="run").predict(make_data(8))
