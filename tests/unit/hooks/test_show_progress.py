import io
import re
import sys
import types

import pytest
import torch
from tests.tiny import make_classifier, make_trainer

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks import RecordTimes, SaveCheckpoint, ShowProgress
from hookloop.hooks.showing._displays import Bars, Lines, Notebook


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(tmp_path, file=None, **options):
    file = file or io.StringIO()
    hooks = [RecordTimes(), ShowProgress(every=2, file=file), *options.pop("hooks", [])]
    trainer = make_classifier(hooks=hooks, run_dir=tmp_path / "run", **options)
    trainer.train()
    return file.getvalue(), trainer


def test_lines_show_the_run_and_its_end(tmp_path):
    text, _ = shown(tmp_path, max_epochs=2)
    lines = text.splitlines()
    assert lines[0] == f"{tmp_path / 'run'}  on cpu"
    assert lines[1] == "hooks: record_times, show_progress"
    progress = r"epoch 1/2  iter 2/6  loss [\d.]+  lr 0.1  [\d.]+ ms/iter \(data .*\)  eta 0:00:00"
    assert re.fullmatch(progress, lines[2])
    assert re.fullmatch(r"epoch 1/2  train: loss [\d.]+", lines[3])
    assert re.fullmatch(r"epoch 1/2  val: loss [\d.]+  accuracy [\d.]+", lines[4])
    end = lines.index("completed after 6 iterations, 2 epochs in 0:00:00")
    assert re.fullmatch(r"  loss  [\d.]+ [▁-█]+ [\d.]+", lines[end + 1])
    assert re.fullmatch(r"  best  val/accuracy [\d.]+ at epoch \d, iteration \d", lines[end + 2])
    assert lines[-1] == f"  in    {tmp_path / 'run'}"


def test_a_validation_in_the_middle_of_an_epoch_names_its_iteration(tmp_path):
    text, _ = shown(tmp_path, max_epochs=2, val_every="2 iters")
    assert re.findall(r"^(.*)  val:", text, flags=re.MULTILINE) == [
        "epoch 1/2  iter 2/6",
        "epoch 2/2  iter 4/6",
        "epoch 2/2  iter 6/6",
    ]


def test_a_validation_without_loss_and_metrics_says_so(tmp_path):
    file = io.StringIO()
    val_data = [torch.ones(2, 4)]  # Without targets, so there is nothing to compute.
    make_trainer(hooks=[ShowProgress(file=file)], val_data=val_data, run_dir=tmp_path).train()
    assert "epoch 1/1  val: no metrics\n" in file.getvalue()


def test_a_test_adds_its_result_and_no_second_summary(tmp_path):
    file = io.StringIO()
    _, trainer = shown(tmp_path, file)
    length = len(file.getvalue())
    trainer.test()
    (line,) = file.getvalue()[length:].splitlines()
    assert line.startswith("epoch 1/1  test: loss")


def test_the_summary_can_be_left_out(tmp_path):
    file = io.StringIO()
    make_trainer(hooks=[ShowProgress(file=file, summary=False)], run_dir=tmp_path).train()
    assert file.getvalue().splitlines()[-1].startswith("completed after 3 iterations")


def test_a_terminal_gets_bars_that_disappear_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    text, _ = shown(tmp_path, Terminal(), max_epochs=2)
    assert "━" in text and "epoch 2/2" in text
    assert "\x1b[?25h" in text  # The cursor is visible again.
    assert "completed after 6 iterations" in text


def test_bars_are_up_to_date_during_a_validation(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(Bars, "begin_update", lambda self: True)
    monkeypatch.setattr(Bars, "show_training", lambda self, run, recent: None)
    shown_iters = []

    class Look(Hook):
        priority = 100

        def after_val_iter(self, run):
            bars = next(hook for hook in run.hooks if isinstance(hook, ShowProgress))._display
            shown_iters.append(bars._frame.bars.tasks[bars._run_bar].completed)

    shown(tmp_path, Terminal(), max_epochs=2, hooks=[Look()])
    assert shown_iters == [3] * 3 + [6] * 3


def test_a_failing_run_restores_the_terminal(tmp_path, monkeypatch):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("boom")

    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    with pytest.raises(RuntimeError, match="boom"):
        shown(tmp_path, file, hooks=[Fail()])
    text = file.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert "failed (RuntimeError: boom) after 1 iteration, " in text


def test_a_notebook_gets_one_output_with_updates(tmp_path, monkeypatch):
    class Handle:
        updates = 0

        def update(self, content, raw):
            Handle.updates += 1
            Handle.text = content["text/plain"]

    displays = []

    def display(content, raw, display_id):
        displays.append(content)
        return Handle()

    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    fake.display = types.SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    make_classifier(hooks=[ShowProgress()], run_dir=tmp_path, max_epochs=30).train()
    assert len(displays) == 1 and Handle.updates > 30
    assert len(Handle.text.splitlines()) <= Notebook.LINES
    assert Handle.text.endswith(str(tmp_path))


def test_the_output_decides_how_a_run_is_shown():
    assert ShowProgress(file=io.StringIO())._display_class is Lines
    assert ShowProgress(file=Terminal())._display_class is Bars
    assert ShowProgress(file=Terminal()).every is None


def test_curve_and_best_values_continue_after_a_resume(tmp_path):
    def train(**options):
        file = io.StringIO()
        hooks = [ShowProgress(file=file), SaveCheckpoint()]
        make_classifier(hooks=hooks, run_dir=tmp_path, **options).train()
        return file.getvalue()

    train(max_epochs=4)
    text = train(max_epochs=5, resume=True)
    assert f"{tmp_path}  on cpu, continuing after iteration 12" in text
    curve = re.search(r"  loss  [\d.]+ ([▁-█]+) ", text)[1]
    assert len(curve) == 5


def test_characters_that_the_output_cannot_encode_do_no_harm(tmp_path):
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    hooks = [ShowProgress(file=file)]
    assert make_trainer(hooks=hooks, run_dir=tmp_path, max_epochs=3).train().status == "completed"
    file.seek(0)
    assert "  loss  " in file.read()


def test_an_interval_in_epochs_is_rejected():
    with pytest.raises(HookError, match="ShowProgress: give iterations or time"):
        ShowProgress(every="1 epoch")


def test_a_line_shows_the_means_since_the_last_line(tmp_path):
    class Count(Hook):
        def after_train_iter(self, run):
            run.metrics.put("train/count", run.progress.iter)

    text, _ = shown(tmp_path, max_epochs=2, hooks=[Count()])
    assert re.findall(r"count ([\d.]+)  lr", text) == ["1.5", "3.5", "5.5"]
