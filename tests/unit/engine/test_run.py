"""The run as hooks see it: requests, and what it looks up."""

import pytest
import torch
from tests.names import iter_file
from tests.tiny import make_data, make_model, make_trainer, record

from hookloop import Hook
from hookloop.checkpoint.saving.request import Save
from hookloop.errors import CheckpointError, HookError, ModelError
from hookloop.hooks import WriteTo
from hookloop.writers.base import Writer
from hookloop.writers.records import Text


def test_firing_an_undeclared_point_is_an_error(tmp_path):
    trainer = make_trainer(run_dir=tmp_path)
    trainer.check()
    with pytest.raises(HookError, match="'after_generate'"):
        trainer.run.fire("after_generate")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda run: run.epoch, "It is run.progress.epoch"),
        (lambda run: run.global_step, "It is run.progress.iter"),
        (lambda run: run.log("a", 1), r"It is run.metrics.put\(name, value\)"),
        (lambda run: run.mdoel, "Did you mean 'model'"),
    ],
)
def test_what_others_look_for_in_a_run_is_named(use, message, tmp_path):
    class Look(Hook):
        def after_train_iter(self, run):
            use(run)

    with pytest.raises(AttributeError, match=message):
        make_trainer(hooks=[Look()], run_dir=tmp_path).train()


def test_the_first_reason_to_stop_counts():
    run = make_trainer().run
    run.stop("enough")
    run.stop("SIGTERM", signal=15)
    assert (run._internals.requests.stop.reason, run._internals.requests.any) == ("enough", True)
    assert not run.is_interrupted


def test_a_signal_interrupts_and_another_request_does_not():
    run = make_trainer().run
    assert not run.is_interrupted
    run.stop("SIGTERM", signal=15)
    assert run.is_interrupted


def test_a_checkpoint_is_requested_once_under_the_iteration_or_a_name():
    run = make_trainer().run
    run.progress.iter = 7
    for what in (None, None, "mine.pth", Save("mine.pth"), Save("mine.pth", keep=2)):
        run.save(what)
    assert run._internals.requests.saves == [
        Save(iter_file(7)), Save("mine.pth"), Save("mine.pth", keep=2),
    ]  # fmt: skip
    with pytest.raises(CheckpointError, match="../mine.pth"):
        run.save("../mine.pth")


def test_requests_are_carried_out_after_the_iteration_in_which_they_were_made(tmp_path):
    class Ask(Hook):
        def after_forward(self, run):
            if run.phase == "train" and run.progress.iter == 1:
                run.validate()
                run.save("asked.pth")

    hook, calls = record(["before_val", "before_save_checkpoint"], lambda run: run.progress.iter)
    make_trainer(
        hooks=[Ask(), hook], val_data=make_data(4), val_every={"begin": 99}, run_dir=tmp_path
    ).train()
    assert calls == [("before_save_checkpoint", 2), ("before_val", 2)]
    assert (tmp_path / "asked.pth").is_file()


def test_the_one_optimizer_is_found_and_of_several_none_is_chosen():
    model = make_model()
    optimizers = {name: torch.optim.SGD(model.parameters(), lr=0.1) for name in ("one", "two")}
    assert make_trainer(model=model, optimizer=optimizers["one"]).run.optimizer is optimizers["one"]
    run = make_trainer(model=model, optimizer=optimizers).run
    with pytest.raises(ModelError, match="there are: one, two"):
        _ = run.optimizer


@pytest.mark.parametrize(
    "batch", [torch.ones(5, 2), (torch.ones(5, 2), None), {"x": torch.ones(5)}]
)
def test_the_size_of_the_batch_is_that_of_its_samples(batch):
    run = make_trainer().run
    run.batch = batch
    assert run.batch_size == 5


def test_a_misspelled_attribute_of_a_run_cannot_be_set():
    with pytest.raises(AttributeError):
        make_trainer().run.bacth = None


def test_a_record_gets_the_iterations_completed_and_goes_to_the_outbox(tmp_path):
    class Report(Hook):
        def after_train_iter(self, run):
            run.emit(Text("note", f"at {run.progress.iter}"))

    written = []

    class Keep(Writer):
        def write(self, records):
            written.extend(record for record in records if isinstance(record, Text))

    make_trainer(hooks=[Report(), WriteTo(Keep())], run_dir=tmp_path).train()
    assert [(record.step, record.text) for record in written] == [
        (1, "at 1"), (2, "at 2"), (3, "at 3"),
    ]  # fmt: skip


def test_it_tells_what_was_called_and_how_it_is_made_up(tmp_path):
    hook, seen = record(("before_run",), lambda run: run._internals.purpose)
    trainer = make_trainer(
        hooks=[hook], run_dir=tmp_path, val_data=make_data(4), data={"test": make_data(4)},
        accumulate=2, val_every="2 epochs",
    )  # fmt: skip
    trainer.train()
    trainer.validate()
    trainer.test()
    trainer.train(max_epochs=2)
    assert [purpose for _, purpose in seen] == ["train", "val", "test", "train"]
    assert (trainer.run.accumulate, str(trainer.run._internals.val_every)) == (2, "2 epochs")
    assert make_trainer(run_dir=tmp_path / "two").run._internals.val_every is None
