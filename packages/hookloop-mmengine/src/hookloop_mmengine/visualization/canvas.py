"""``mmengine.visualization``: an image in a figure of matplotlib.

The figure is made when something is drawn, so that a visualizer of numbers needs no matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hookloop.dialects import require
from hookloop_mmengine.dist import is_main_process
from hookloop_mmengine.visualization.values import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure


class Canvas:
    """An image, and what is drawn on it.

    Args:
        fig_save_cfg: Arguments of matplotlib's figure for drawing.
        fig_show_cfg: Arguments of its figure for `show`.
    """

    def __init__(
        self,
        fig_save_cfg: Mapping[str, object] | None = None,
        fig_show_cfg: Mapping[str, object] | None = None,
    ) -> None:
        self.fig_save_cfg = dict(fig_save_cfg or {"frameon": False})
        self.fig_show_cfg = dict(fig_show_cfg or {"frameon": False})
        self._image: Array | None = None

    # Cached, so that subclasses can set them: some make the figure again.

    @cached_property
    def fig_save(self) -> Figure:
        """The figure."""
        self.fig_save_canvas, figure, self.ax_save = self._initialize_fig(self.fig_save_cfg)
        return figure

    @cached_property
    def ax_save(self) -> Axes:
        """The axes of the figure."""
        return self.fig_save.axes[0]

    @cached_property
    def fig_save_canvas(self) -> FigureCanvasAgg:
        """The pixels of the figure."""
        return cast("FigureCanvasAgg", self.fig_save.canvas)

    @cached_property
    def dpi(self) -> float:
        """The pixels of an inch."""
        return self.fig_save.get_dpi()

    def _initialize_fig(
        self, fig_cfg: Mapping[str, object]
    ) -> tuple[FigureCanvasAgg, Figure, Axes]:
        require("matplotlib", extra="plots", who="Drawing on images")
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        # Not pyplot, which would keep each figure forever.
        figure = Figure(**fig_cfg)  # type: ignore[arg-type]
        axes = figure.add_subplot()
        axes.axis(False)
        figure.subplots_adjust(left=0, right=1, bottom=0, top=1)
        return FigureCanvasAgg(figure), figure, axes

    def set_image(self, image: Array) -> None:
        """Begin with an image, in RGB."""
        if image is None:
            raise AssertionError("An image is needed.")
        self._image = image = image.astype("uint8")
        self.height, self.width = image.shape[:2]
        self._default_font_size = max(np.sqrt(self.height * self.width) // 90, 10)
        # A little more, or rounding down could lose a pixel.
        size = (self.width + 1e-2) / self.dpi, (self.height + 1e-2) / self.dpi
        self.fig_save.set_size_inches(*size)
        self.ax_save.cla()
        self.ax_save.axis(False)
        self._put(image, "none")

    def get_image(self) -> Array:
        """Return the image with all that was drawn on it, in RGB."""
        if self._image is None:
            raise AssertionError("Please set image using `set_image`")
        return img_from_canvas(self.fig_save_canvas)

    def show(
        self,
        drawn_img: Array | None = None,
        win_name: str = "image",
        wait_time: float = 0.0,
        continue_key: str = " ",
        backend: str = "matplotlib",
    ) -> Figure | None:
        """Show the image in a window.

        Args:
            drawn_img: Another image to show.
            win_name: The title of the window.
            wait_time: After how many seconds the program continues; 0 to wait for a key.
            continue_key: The key.
            backend: Only ``matplotlib``.
        """
        if backend != "matplotlib":
            raise ValueError(f"The backend '{backend}' is not offered. Use 'matplotlib'.")
        if not is_main_process():
            return None
        import matplotlib.pyplot as plt

        image = self.get_image() if drawn_img is None else drawn_img
        # The window of an earlier image is used again.
        settings = {} if plt.fignum_exists(1) else self.fig_show_cfg
        figure = plt.figure(num=1, clear=True, **settings)  # type: ignore[arg-type]
        if figure.canvas.manager is not None:
            figure.canvas.manager.set_window_title(win_name)
        figure.subplots_adjust(left=0, right=1, bottom=0, top=1)
        axes = figure.add_subplot()
        axes.axis(False)
        axes.imshow(image)
        figure.canvas.draw()
        if "inline" in plt.get_backend():  # A notebook shows what it is given.
            return figure
        wait_continue(figure, wait_time, continue_key)
        return None

    def _put(self, image: Array, interpolation: str) -> None:
        edges = (0, self.width, self.height, 0)
        self.ax_save.imshow(image, extent=edges, interpolation=interpolation)


def img_from_canvas(canvas: FigureCanvasAgg) -> Array:
    """Return the pixels of a canvas, in RGB."""
    data, (width, height) = canvas.print_to_buffer()  # type: ignore[no-untyped-call]
    return np.frombuffer(data, np.uint8).reshape(height, width, 4)[..., :3].copy()


def wait_continue(figure: Figure, timeout: float = 0, continue_key: str = " ") -> int:
    """Show a window until a key is pressed, the time is over (0) or it is closed (1)."""
    import matplotlib.pyplot as plt

    if "inline" in plt.get_backend():
        return 0
    if figure.canvas.manager is not None:
        figure.show()
    events: list[Any] = []

    def note(event: Any) -> None:  # noqa: ANN401 - an event of any kind
        events.append(event)
        figure.canvas.stop_event_loop()

    names = ("key_press_event", "close_event")
    connections = [figure.canvas.mpl_connect(name, note) for name in names]  # type: ignore[call-overload]
    try:
        while True:
            events.clear()
            figure.canvas.start_event_loop(timeout)
            if any(event.name == "close_event" for event in events):
                return 1
            if not events or events[-1].key == continue_key:
                return 0
    finally:
        for connection in connections:
            figure.canvas.mpl_disconnect(connection)
