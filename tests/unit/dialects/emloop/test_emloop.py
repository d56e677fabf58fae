"""What the recorded trainings do not show: batches, state, files, the main loop."""

import os
import signal

import numpy as np
import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop.core.hook import Hook
from hookloop.core.run import Interrupted
from hookloop.dialects.emloop import AbstractHook, hooks
from hookloop.dialects.emloop.batch_data import BatchData
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint


class Look(AbstractHook):
    """Notes what ``note`` returns of each batch and epoch."""

    def __init__(self, note=lambda stream, data: stream):
        super().__init__()
        self.note = note
        self.seen = []

    def after_batch(self, stream_name, batch_data):
        self.seen.append(self.note(stream_name, batch_data))


def train(tmp_path, *some, **options):
    trainer = make_trainer(
        hooks=[*some, hooks.SkipZerothEpoch()], **({"run_dir": tmp_path / "run"} | options)
    )
    trainer.train()
    return trainer


# --- batches --------------------------------------------------------------------------------------


def test_every_microbatch_is_a_batch(tmp_path):
    hook = Look(lambda stream, data: data["targets"].shape)
    train(tmp_path, hook, train_data=make_data(20), accumulate=2)
    assert hook.seen == [(4, 1)] * 5


def test_turns_over_one_batch_make_one_batch(tmp_path):
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": torch.nn.Linear(4, 1)})

    def step(name):
        def compute(run, batch):
            output = run.model[name](batch[0])
            return {"loss": output.square().mean(), name: output}

        return compute

    hook = Look(lambda stream, data: sorted(data))
    train(
        tmp_path,
        hook,
        model=model,
        step={"a": step("a"), "b": step("b")},
        optimizer={name: torch.optim.SGD(model[name].parameters(), lr=0.1) for name in "ab"},
    )
    assert hook.seen == [["a", "b", "inputs", "loss", "targets"]] * 3


def test_values_are_arrays_without_gradients_and_a_number_is_repeated():
    data = BatchData((torch.ones(3, 2), torch.zeros(3)))
    data.add(torch.ones(3, 1, requires_grad=True) * 2, torch.tensor(0.5, requires_grad=True))
    assert isinstance(data["output"], np.ndarray) and data["output"].shape == (3, 1)
    assert data["loss"].tolist() == [0.5] * 3
    assert {**data}["loss"].tolist() == [0.5] * 3
    assert [type(value) for value in data.values()] == [np.ndarray] * 4
    assert data.get("nothing") is None
    half = BatchData({"x": torch.ones(2, dtype=torch.bfloat16)})
    assert half["x"].dtype == np.float32


def test_a_variable_that_a_hook_adds_is_there_for_the_next(tmp_path):
    flatten, look = hooks.Flatten({"inputs": "flat"}), Look(lambda stream, data: len(data["flat"]))
    train(tmp_path, flatten, look)
    assert look.seen == [16] * 3


def test_batch_and_output_must_not_share_a_name(tmp_path):
    def step(run, batch):
        return {"loss": run.model(batch["x"]).mean(), "x": 1.0}

    with pytest.raises(HookError, match="both have x"):
        train(tmp_path, Look(), train_data=[{"x": torch.ones(2, 4)}], step=step)


# --- the main loop --------------------------------------------------------------------------------


def test_the_main_loop_offers_what_hooks_touch(tmp_path):
    class Ask(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            loop = self._main_loop
            seen.append((loop.training_epochs_done, loop.extra_streams, loop.fixed_epoch_size))
            seen.append(len(list(loop.get_stream("valid"))))

    seen = []
    train(tmp_path, Ask(), val_data=make_data(8))
    assert seen == [(1, ["valid"], 3), 2]


def test_a_hook_belongs_to_one_main_loop(tmp_path):
    hook = Look()
    trainer = train(tmp_path, hook, val_data=make_data(4))
    trainer.validate()  # The same loop, again.
    with pytest.raises(ValueError, match="belongs to a main loop already"):
        train(tmp_path, hook, run_dir=tmp_path / "other")


def test_the_zeroth_epoch_leaves_the_training_as_it_is(tmp_path):
    shuffled = {"train_data": make_data(shuffle=True), "seed": 3}
    plain = train(tmp_path, run_dir=tmp_path / "plain", **shuffled)
    hook = Look()
    with_zeroth = make_trainer(hooks=[hook], run_dir=tmp_path / "run", **shuffled)
    with_zeroth.train()
    assert hook.seen == ["train"] * 6
    for one, other in zip(
        plain.run.model.parameters(), with_zeroth.run.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)


def test_data_that_can_be_read_once_is_left_for_the_training(tmp_path):
    hook = Look()
    trainer = make_trainer(hooks=[hook], train_data=iter(list(make_data())), max_iters=3,
                           run_dir=tmp_path / "run")  # fmt: skip
    trainer.train()
    assert hook.seen == ["train"] * 3


def test_a_signal_ends_the_training_successfully(tmp_path):
    class Note(AbstractHook):
        def after_batch(self, **_):
            os.kill(os.getpid(), signal.SIGINT)

        def after_training(self, success):
            ends.append(success)

    ends = []
    with pytest.raises(Interrupted):
        train(tmp_path, Note(), hooks.CatchSigint(), max_epochs=9)
    assert ends == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_model_that_a_hook_was_given_learns_to_save(tmp_path):
    model = torch.nn.Linear(4, 1)
    hook = hooks.SaveEvery(model=model, n_epochs=2)
    train(tmp_path, hook, model=model, max_epochs=4)
    names = sorted(path.name for path in (tmp_path / "run").glob("model_*"))
    assert names == ["model_2.pth", "model_4.pth"]
    saved = torch.load(tmp_path / "run" / "model_4.pth", weights_only=True)
    assert torch.equal(saved["model"]["weight"], model.weight)
    assert hook._model.in_features == 4  # Everything else is the model's own.


def test_after_training_hears_of_a_failure(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    class Note(AbstractHook):
        def after_training(self, success):
            ends.append(success)

    ends = []
    with pytest.raises(RuntimeError, match="broken"):
        train(tmp_path, Note(), Fail())
    assert ends == [False]


# --- state ----------------------------------------------------------------------------------------


def test_a_resume_in_the_middle_of_an_epoch_loses_nothing(tmp_path):
    def make_hooks(out):
        return [
            hooks.ComputeStats([{"loss": ["mean", "max"]}]),
            hooks.WriteCSV(output_dir=str(out)),
            hooks.StopOnPlateau(long_term=9, short_term=3, variable="loss", stream="train"),
            hooks.StopAfter(iterations=100),
            SaveCheckpoint(every="2 iters", keep=None),
        ]

    whole = tmp_path / "whole"
    train(tmp_path, *make_hooks(whole), max_epochs=3, run_dir=whole)
    parts = tmp_path / "parts"
    first = make_hooks(parts)
    train(tmp_path, *first, max_epochs=3, max_iters=4, run_dir=parts)
    again = make_hooks(parts)
    train(tmp_path, *again, max_epochs=3, run_dir=parts, resume=True)
    assert (parts / "training.csv").read_text() == (whole / "training.csv").read_text()
    assert again[3]._iters_done == 9
    assert len(again[2]._saved_loss) == 3


# --- files ----------------------------------------------------------------------------------------


def step(run, batch):
    output = run.model(batch["x"])
    return {
        "loss": output.square().mean(),
        "labels": torch.tensor([0, 1]),
        "predictions": torch.tensor([1, 1]),
        "curve": torch.arange(6.0).reshape(2, 3),
        "mask": torch.tensor([[True, True, False], [True, False, False]]),
        "picture": torch.ones(2, 4, 5),
    }


BATCH = {"x": torch.ones(2, 4), "ids": ["a/b", "c"], "paths": ["one", "two"]}


def train_files(tmp_path, *some):
    return train(tmp_path, *some, train_data=[BATCH], val_data=[BATCH], step=step)


def test_the_confusion_matrix_is_drawn_or_stored(tmp_path):
    class Keep(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            shapes.append(epoch_data["valid"]["confusion_heatmap"].shape)

    shapes = []
    stored = hooks.SaveConfusionMatrix(str(tmp_path), None, figure_action="store",
                                       classes_names=["no", "yes"], mask_name=None)  # fmt: skip
    train_files(tmp_path, hooks.SaveConfusionMatrix(str(tmp_path), None), stored, Keep())
    assert (tmp_path / "confusion_matrix_epoch_1_valid.png").is_file()
    assert (tmp_path / "confusion_matrix_epoch_1_train.png").is_file()
    assert shapes[0][2] == 3


def test_lines_are_plotted_under_the_names_of_examples(tmp_path):
    train_files(tmp_path, hooks.PlotLines(str(tmp_path), ["curve"], streams=["valid"]))
    folder = tmp_path / "visual" / "epoch_0" / "valid"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["a___b_batch_1_plot-curve.png", "c_batch_1_plot-curve.png"]


def test_sequences_are_written_without_their_padding(tmp_path):
    file = tmp_path / "sequences.csv"
    train_files(tmp_path, hooks.SequenceToCsv(["curve"], "ids", str(file), "mask", ["valid"]))
    assert file.read_text().splitlines() == [
        "ids,index,curve", "a/b,0,0.0", "a/b,1,1.0", "c,0,3.0",
    ]  # fmt: skip


def test_masks_are_pictures(tmp_path):
    train_files(tmp_path, hooks.SaveMasks("picture", "paths", output_root=str(tmp_path)))
    assert (tmp_path / "two_mask.png").read_bytes()[1:4] == b"PNG"


def test_files_are_copied_and_a_missing_one_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "kept").mkdir()
    train_files(tmp_path, hooks.SaveFile([str(tmp_path / "notes.txt")], str(tmp_path / "kept")))
    assert (tmp_path / "kept" / "notes.txt").read_text() == "notes"
    with pytest.raises(AssertionError, match="no file"):
        train(tmp_path, hooks.SaveFile(["nowhere"], "."), run_dir=tmp_path / "other")


def test_progress_is_shown_on_a_terminal_only(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    train_files(tmp_path, hooks.ShowProgress())
    assert "train: 1" in capsys.readouterr().out


def test_statistics_are_those_of_numpy(tmp_path):
    class Keep(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            kept.update(
                {name: float(value) for name, value in epoch_data["train"]["curve"].items()}
            )

    kept = {}
    train_files(tmp_path, hooks.ComputeStats([{"curve": ["median", "nanfraction"]}]), Keep())
    assert kept == {"median": 2.5, "nanfraction": 0.0}
    with pytest.raises(ValueError, match="Did you mean 'median'"):
        hooks.ComputeStats([{"curve": ["medain"]}])
