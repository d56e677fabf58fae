"""Variables of single examples as curves."""

import numpy as np
import pytest

from hookloop_dialects.emloop.hooks import PlotLines

BATCH = {
    "ids": ["a/b", "c", "d"],
    "curve": np.arange(9.0).reshape(3, 3),
    "other": np.ones((3, 3)),
    "mask": np.array([[1, 1, 0]] * 3),
}


def files(tmp_path):
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))


def test_a_picture_is_named_by_epoch_stream_example_and_batch(tmp_path):
    hook = PlotLines(str(tmp_path), ["curve", "other"], streams=["valid"], example_count=2)
    hook.after_batch("train", BATCH)
    hook.after_batch("valid", BATCH)
    hook.after_epoch(epoch_id=0, epoch_data={})
    hook.after_batch("valid", BATCH)
    assert files(tmp_path) == [
        f"visual/epoch_{epoch}/valid/{name}_batch_1_plot-curve-vs-other.png"
        for epoch in (0, 1)
        for name in ("a___b", "c")
    ]


def test_the_number_of_batches_can_be_limited_per_stream_and_epoch(tmp_path):
    hook = PlotLines(
        str(tmp_path), ["curve"], batch_count=2, example_count=1, root_dir="p", out_format="svg"
    )
    for _ in range(3):
        hook.after_batch("train", BATCH)
    names = sorted(path.name for path in tmp_path.rglob("*.svg"))
    assert names == [f"a___b_batch_{number}_plot-curve.svg" for number in (1, 2)]


def test_lines_have_the_values_without_padding_and_the_limits(tmp_path):
    hook = PlotLines(str(tmp_path), ["curve"], pad_mask_variable="mask", ymin=-1, ymax=20)
    (axes,) = hook.plot_figure(1, BATCH).axes
    assert axes.lines[0].get_ydata().tolist() == [3.0, 4.0]
    assert axes.get_ylim() == (-1, 20)


def test_it_needs_a_variable_and_finds_it(tmp_path):
    with pytest.raises(AssertionError, match="at least one variable"):
        PlotLines(str(tmp_path), [])
    with pytest.raises(KeyError, match="Did you mean 'curve'"):
        PlotLines(str(tmp_path), ["curv"]).after_batch("train", BATCH)


def test_a_subclass_draws_and_names_its_own_picture(tmp_path):
    class Mine(PlotLines):
        figure_suffix = "mine"

        def plot_figure(self, idx, batch_data):
            from matplotlib import pyplot

            figure, axes = pyplot.subplots()
            axes.plot(batch_data["curve"][idx])
            return figure

    Mine(str(tmp_path), ["curve"], example_count=1).after_batch("valid", BATCH)
    assert files(tmp_path) == ["visual/epoch_0/valid/a___b_batch_1_plot-mine.png"]
    from matplotlib import pyplot

    assert not pyplot.get_fignums()  # It is closed.
