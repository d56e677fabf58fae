"""Callbacks of Transformers in a run: what they see, ask for and keep."""

import json

import pytest
from tests.tiny import make_data, make_trainer

from hookloop import dialects
from hookloop.dialects import ForeignAttributeError
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, WriteMetrics
from hookloop.testing import assert_resumes_exactly, tiny_trainer

with dialects.alias("transformers"):
    import transformers
    from transformers import EarlyStoppingCallback, PrinterCallback, TrainerCallback


def at(event, act):
    """A callback with one event."""
    return type(
        "Foreign", (TrainerCallback,), {event: lambda self, *args, **kwargs: act(*args, **kwargs)}
    )()


def train(*callbacks, **options):
    trainer = make_trainer(
        hooks=callbacks, **({"run_dir": "run", "val_data": make_data(8)} | options)
    )
    trainer.train()
    return trainer


def test_arguments_come_from_the_run_then_from_its_config_then_by_default():
    seen = {}

    def look(args, state, control, **kwargs):
        assert isinstance(args, transformers.TrainingArguments)
        assert isinstance(state, transformers.TrainerState)
        for name in ("learning_rate", "save_steps", "logging_steps", "run_name", "eval_strategy",
                     "train_batch_size", "do_eval", "local_rank"):  # fmt: skip
            seen[name] = getattr(args, name)
        assert json.loads(args.to_json_string())["logging_steps"] == 5
        assert args.to_dict()["save_steps"] == 500

    train(at("on_train_begin", look), setup={"config": {"logging_steps": 5}})
    assert seen == {
        "learning_rate": 0.05, "save_steps": 500, "logging_steps": 5, "run_name": "run",
        "eval_strategy": "epoch", "train_batch_size": 4, "do_eval": True, "local_rank": -1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"default_hooks": {}}, 50),
        ({"default_hooks": {"metrics": WriteMetrics(every=3)}}, 3),
        (
            {
                "default_hooks": {"metrics": WriteMetrics(every=3)},
                "setup.config": {"logging_steps": 2},
            },
            2,
        ),
        ({"default_hooks": {"metrics": WriteMetrics(every="1 minutes")}}, 500),
        ({"default_hooks": {"metrics": None}}, 500),
    ],
)
def test_what_is_logged_comes_as_often_as_the_run_writes(options, steps):
    seen, logged = set(), []

    def log(args, state, control, logs, **kwargs):
        seen.add((args.logging_steps, state.logging_steps))
        if "loss" in logs:
            logged.append(state.global_step)

    train(at("on_log", log), max_epochs=None, max_iters=7, val_data=None, **options)
    assert seen == {(steps, steps)}
    assert logged == list(range(steps, 8, steps))


@pytest.mark.parametrize(("every", "is_reported"), [("1 minutes", True), (3, False)])
def test_metrics_that_are_written_by_time_are_reported(every, is_reported, caplog):
    writes = {"metrics": WriteMetrics(every=every)}
    train(at("on_log", lambda *_, **__: None), max_epochs=1, default_hooks=writes)
    assert ("every 500: for another number" in caplog.text) is is_reported


def test_a_callback_that_stops_at_a_logged_loss_stops():
    def stop(args, state, control, logs, **kwargs):
        control.should_training_stop = "loss" in logs
        return control

    writes = {"metrics": WriteMetrics(every=2)}
    trainer = train(at("on_log", stop), max_epochs=9, val_data=None, default_hooks=writes)
    assert trainer.run.progress.iter == 2


def test_the_last_step_is_evaluated_once():
    evaluated = []

    def ask(args, state, control, **kwargs):
        control.should_evaluate = state.global_step == state.max_steps
        return control

    note = at("on_evaluate", lambda args, state, control, **kw: evaluated.append(state.global_step))
    train(at("on_step_end", ask), note)
    assert evaluated == [3]


def test_an_argument_that_is_not_offered_names_the_callback():
    with pytest.raises(ForeignAttributeError, match="'foreign' asks for args.tp_size"):
        train(at("on_step_end", lambda args, state, control, **kwargs: args.tp_size))


def test_a_checkpoint_is_saved_and_announced():
    saved = []

    def ask(args, state, control, **kwargs):
        control.should_save = state.global_step == 2
        return control

    note = at("on_save", lambda args, state, control, **kwargs: saved.append(control.should_save))
    trainer = train(at("on_step_end", ask), note)
    assert (trainer.run.dir / "iter_2.pth").is_file()
    assert saved == [False]


def test_an_epoch_cannot_be_left():
    def ask(args, state, control, **kwargs):
        control.should_epoch_stop = True

    with pytest.raises(HookError, match="should_epoch_stop"):
        train(at("on_step_end", ask))


def test_what_would_never_be_called_is_rejected():
    with pytest.raises(HookError, match="would do nothing"):
        make_trainer(hooks=[at("on_push_begin", lambda *args, **kwargs: None)])


def test_a_test_is_a_prediction():
    seen = []

    def note(args, state, control, metrics, **kwargs):
        seen.append(sorted(metrics))

    trainer = make_trainer(hooks=[at("on_predict", note)], data={"test": make_data(8)})
    trainer.test()
    assert seen == [
        ["test_loss", "test_runtime", "test_samples_per_second", "test_steps_per_second"]
    ]


def test_streams_have_their_names_in_the_metrics():
    seen = []

    def note(args, state, control, metrics, **kwargs):
        seen.append({name for name in metrics if name.endswith("loss")})

    streams = {"clean": make_data(8), "noisy": make_data(8)}
    train(at("on_evaluate", note), val_data=streams)
    assert seen == [{"eval_clean_loss", "eval_noisy_loss"}]


def test_the_mean_loss_is_exact_over_more_steps_than_the_store_keeps():
    logged, losses = [], []
    keep = at("on_log", lambda *args, logs, **kwargs: logged.append(logs.get("loss")))
    trainer = make_trainer(
        hooks=[keep],
        max_epochs=None,
        max_iters=250,
        setup={"config": {"logging_steps": 250}},
        run_dir="run",
    )
    trainer.on("after_train_iter")(lambda run: losses.append(float(run.loss.detach())))
    trainer.train()
    assert logged[0] == pytest.approx(sum(losses) / 250, rel=1e-5)


def test_a_run_that_is_cut_and_resumed_ends_as_one_that_is_not():
    def make(**options):
        stop = EarlyStoppingCallback(early_stopping_patience=3)
        config = {"metric_for_best_model": "loss", "logging_steps": 1}
        return tiny_trainer(stop, setup={"config": config}, **options)

    # The history has times.
    assert_resumes_exactly(make, stop_at=(1, 4), ignore=("log_history",))


def test_the_patience_is_restored():
    config = {"metric_for_best_model": "eval_loss"}
    stop = EarlyStoppingCallback(2, 99.0)
    train(stop, SaveCheckpoint(), setup={"config": config}, max_epochs=2)
    assert stop.early_stopping_patience_counter == 1
    again = EarlyStoppingCallback(2, 99.0)
    trainer = train(again, SaveCheckpoint(), setup={"config": config}, max_epochs=9, resume=True)
    assert trainer.run.progress.epoch == 3
    assert trainer.run.outcome.status == "stopped"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs metric_for_best_model"),
        (
            {"setup.config": {"metric_for_best_model": "loss"}, "val_data": None},
            "needs validations",
        ),
    ],
)
def test_early_stopping_rejects_a_run_in_which_it_could_not_act(options, message):
    with pytest.raises(AssertionError, match=message):
        train(EarlyStoppingCallback(), **options)


def test_logs_are_printed(capsys):
    train(PrinterCallback(), setup={"config": {"logging_strategy": "epoch"}})
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("'")[1] for line in printed] == ["loss", "eval_loss", "train_runtime"]


def test_the_state_is_written_as_json(tmp_path):
    path = tmp_path / "state.json"
    train(at("on_train_end", lambda args, state, control, **kwargs: state.save_to_json(path)))
    assert json.loads(path.read_text())["global_step"] == 3


def test_a_clipped_norm_is_logged():
    seen = []
    keep = at("on_log", lambda *args, logs, **kwargs: seen.append("grad_norm" in logs))
    train(keep, clip_norm=1.0, val_data=None, setup={"config": {"logging_steps": 1}})
    assert seen == [True, True, True, False]


def test_what_the_alias_lacks_is_named():
    with (
        dialects.alias("transformers"),
        pytest.raises(ImportError, match=r"has no Seq2SeqTrainer\. Use"),
    ):
        from transformers import Seq2SeqTrainer  # noqa: F401


def test_callbacks_of_both_systems_share_a_run():
    seen = []
    with dialects.alias("lightning"):
        from lightning.pytorch.callbacks import LambdaCallback
    step = at("on_step_end", lambda args, state, control, **kwargs: seen.append(state.global_step))
    batch = LambdaCallback(
        on_train_batch_end=lambda trainer, *args: seen.append(trainer.global_step)
    )
    train(step, batch)
    assert seen == [1, 1, 2, 2, 3, 3]


def test_each_replacement_of_a_service_is_a_hook_of_ours():
    import hookloop.hooks
    from hookloop_callbacks.on_transformers.own_callbacks import INSTEAD

    assert {"CometCallback", "ClearMLCallback", "WandbCallback"} <= set(INSTEAD)
    for replacement in INSTEAD.values():
        assert hasattr(hookloop.hooks, replacement.rpartition(".")[2])


def test_a_prediction_announces_its_steps_and_its_end():
    seen = []

    class Watch(TrainerCallback):
        def on_prediction_step(self, args, state, control, eval_dataloader=None, **kwargs):
            seen.append(eval_dataloader is data)

        def on_predict(self, args, state, control, metrics=None, **kwargs):
            seen.append(metrics["test_samples_per_second"] > 0)

    data = make_data(8)
    make_trainer(hooks=[Watch()], run_dir="run").predict(data)
    assert seen == [True] * (len(data) + 1)
