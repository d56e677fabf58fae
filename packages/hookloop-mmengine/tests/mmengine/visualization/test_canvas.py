"""An image in a figure of matplotlib."""

import numpy as np
import pytest

from hookloop_mmengine.visualization.canvas import Canvas, wait_continue


@pytest.mark.parametrize(("height", "width"), [(10, 10), (7, 31), (200, 133)])
def test_an_image_comes_back_as_it_was_set(height, width):
    image = np.random.default_rng(0).integers(0, 255, (height, width, 3)).astype(np.uint8)
    canvas = Canvas()
    canvas.set_image(image)
    assert np.array_equal(canvas.get_image(), image)
    # A second image replaces the first, of another size.
    canvas.set_image(image[:5, :4])
    assert np.array_equal(canvas.get_image(), image[:5, :4])


def test_without_an_image_there_is_none():
    with pytest.raises(AssertionError, match="Please set image using `set_image`"):
        Canvas().get_image()
    with pytest.raises(AssertionError, match="An image is needed"):
        Canvas().set_image(None)


def test_a_subclass_may_make_the_figure_itself():
    canvas = Canvas()
    canvas.fig_save_canvas, canvas.fig_save, canvas.ax_save = canvas._initialize_fig({"dpi": 50})
    canvas.set_image(np.zeros((3, 4, 3)))
    assert canvas.get_image().shape == (3, 4, 3)
    assert canvas.dpi == 50


def test_the_window_closes_after_its_time(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    shown = []
    monkeypatch.setattr(
        "hookloop_mmengine.visualization.canvas.wait_continue",
        lambda figure, time, key: shown.append((figure, time, key)),
    )
    canvas = Canvas()
    canvas.set_image(np.zeros((3, 4, 3)))
    canvas.show(wait_time=0.5)
    canvas.show(np.ones((2, 2, 3)), continue_key="n")
    assert [one[1:] for one in shown] == [(0.5, " "), (0.0, "n")]
    assert shown[1][0].axes[0].images[0].get_array().shape == (2, 2, 3)
    plt.close("all")
    with pytest.raises(ValueError, match="'cv2' is not offered. Use 'matplotlib'"):
        canvas.show(backend="cv2")


class Event:
    def __init__(self, name, key=None):
        self.name, self.key = name, key


class Window:
    """A figure whose event loop ends with the events given, one at a time."""

    def __init__(self, *events):
        self.canvas, self.manager = self, None
        self.events, self.handlers = list(events), []

    def mpl_connect(self, name, handler):
        self.handlers.append(handler)
        return len(self.handlers)

    def mpl_disconnect(self, connection):
        self.handlers[connection - 1] = None

    def start_event_loop(self, timeout):
        event = self.events.pop(0)
        if event is not None:
            self.handlers[0](event)

    def stop_event_loop(self): ...


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([None], 0),
        ([Event("key_press_event", "x"), Event("key_press_event", " ")], 0),
        ([Event("close_event")], 1),
    ],
)
def test_a_window_waits_for_its_key(events, wanted):
    window = Window(*events)
    assert wait_continue(window, 1) == wanted
    assert window.handlers == [None, None]
