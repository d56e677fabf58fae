import math

import pytest
import torch
from tests.tiny import make_classifier

from hookloop import Hook
from hookloop.hooks.showing._wording import (
    SPARKS,
    drop_train_prefix,
    format_duration,
    format_milliseconds,
    format_numbers,
    format_peak_memory,
    format_progress,
    format_recent,
    format_remaining,
    format_training,
    is_training_metric,
    read_new,
    read_new_of_hooks,
    read_recent,
    read_unshown,
    sparkline,
    without_times,
)


class During(Hook):
    """Calls a function after each iteration, when the numbers of the iteration are there."""

    priority = 100

    def __init__(self, function):
        self.function = function
        self.results = []

    def after_train_iter(self, run):
        self.results.append(self.function(run))


def train(function, *hooks, **options):
    during = During(function)
    trainer = make_classifier(hooks=[during, *hooks], **options)
    trainer.train()
    return during.results, trainer.run


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"max_epochs": 1}, ["iter 1/3", "iter 2/3", "iter 3/3"]),
        ({"max_epochs": 2}, ["epoch 1/2  iter 1/6", "epoch 1/2  iter 2/6", "epoch 1/2  iter 3/6"]),
        ({"max_iters": 3}, ["epoch 1  iter 1/3", "epoch 1  iter 2/3", "epoch 1  iter 3/3"]),
    ],
)
def test_the_progress_names_the_epoch_only_if_there_may_be_several(options, texts):
    assert train(format_progress, **options)[0][:3] == texts


def test_a_line_has_numbers_rate_speed_and_remaining_time():
    recent = {"loss": 0.5, "iter_time": 2.0, "data_time": 0.0011, "hook_time/x": 9.0}
    lines, _ = train(lambda run: format_training(run, recent), max_epochs=2)
    assert lines[1] == (
        "epoch 1/2  iter 2/6  loss 0.5  lr 0.1  2000 ms/iter (data 1.1)  eta 0:00:08"
    )


def test_without_times_there_is_no_speed_and_no_remaining_time():
    results, _ = train(lambda run: (format_recent(run, {"loss": 1}), format_remaining(run, {})))
    assert results[0] == ("loss 1  lr 0.1", "?")


def test_the_remaining_time_is_that_of_the_remaining_iterations():
    times = {"iter_time": 60.0}
    results, _ = train(lambda run: format_remaining(run, times), max_epochs=1)
    assert results == ["0:02:00", "0:01:00", "0:00:00"]


def test_each_reader_reads_new_values_once():
    def read(run):
        run.metrics.put("quality", run.progress.iter)
        return read_new(run, "a"), read_new(run, "a")

    results, run = train(read)
    assert [(set(first), second) for first, second in results] == [
        ({"train/loss", "quality"}, {})
    ] * 3
    assert "val/loss" in read_new(run, "a")


def test_values_of_hooks_are_read_and_those_of_phases_marked_as_read():
    def read(run):
        run.metrics.put("quality", run.progress.iter)
        return read_new_of_hooks(run, "a", lambda name: name == "val/loss")

    results, run = train(read, max_epochs=2)
    assert results == [{"quality": float(iteration)} for iteration in range(1, 7)]
    assert set(read_new(run, "a")) >= {"val/loss"}


def test_recent_numbers_are_means_over_a_window_and_the_newest_of_hooks():
    def read(run):
        run.metrics.put("train/count", run.progress.iter)
        run.metrics.put("quality", run.progress.iter)
        return read_recent(run, window=2)

    results, _ = train(read)
    assert [row["count"] for row in results] == [1.0, 1.5, 2.5]
    assert [row["quality"] for row in results] == [1.0, 2.0, 3.0]
    assert "loss" in results[0] and "train/loss" not in results[0]


def test_between_epochs_only_what_no_line_of_an_epoch_shows_is_left():
    _, run = train(lambda run: None)
    run.metrics.put("quality", 0.5)
    run.metrics.put("train/x_time", 0.5)
    assert run.progress.stage != "inside"
    rest = read_unshown(run, "a")
    assert rest["quality"] == 0.5
    assert not {"loss", "train_epoch/loss", "x_time"} & set(rest)
    assert read_unshown(run, "a") == {}


def test_names_are_shortened_and_times_left_out():
    values = {"train/loss": 0.1, "val/loss": 0.2, "train/iter_time": 0.3}
    assert drop_train_prefix(without_times(values)) == {"loss": 0.1, "val/loss": 0.2}
    assert [is_training_metric(name) for name in ("train/loss", "train_epoch/loss", "loss")] == [
        True,
        False,
        False,
    ]


def test_numbers_have_four_digits():
    text = format_numbers({"a": 123456.0, "b": 0.000123456, "c": math.nan, "d": 2.0})
    assert text == "a 1.235e+05  b 0.0001235  c nan  d 2"


@pytest.mark.parametrize(
    ("seconds", "digits", "text"),
    [(0.0999, 3, "99.9"), (0.09996, 2, "100"), (0.0, 2, "0"), (12.3456, 3, "12346")],
)
def test_long_times_are_whole_milliseconds(seconds, digits, text):
    assert format_milliseconds(seconds, digits) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00:00"), (59.6, "0:01:00"), (90061, "1 day, 1:01:01")]
)
def test_a_duration_is_rounded_to_seconds(seconds, text):
    assert format_duration(seconds) == text


def test_the_peak_memory_of_the_process_is_in_megabytes():
    number, unit = format_peak_memory(torch.device("cpu")).split()
    assert unit == "MB" and 10 < int(number) < 1_000_000


def test_a_sparkline_spans_from_its_lowest_to_its_highest_value():
    assert sparkline([0.0, 7.0]) == SPARKS[0] + SPARKS[-1]
    assert sparkline([float(value) for value in range(8)]) == SPARKS
    assert sparkline([5.0, 5.0]) == SPARKS[0] * 2
    assert sparkline([1.0, math.nan, 2.0, math.inf]) == f"{SPARKS[0]} {SPARKS[-1]} "
    assert sparkline([math.nan]) == " "


@pytest.mark.parametrize("count", [40, 41, 79, 80, 1000])
def test_a_long_curve_is_averaged_to_the_width(count):
    line = sparkline([float(value) for value in range(count)], width=40)
    assert len(line) == 40 and line[0] == SPARKS[0] and line[-1] == SPARKS[-1]
    assert list(line) == sorted(line)
