"""Images as arrays of bytes, and as PNG files, without an image library."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, cast

import numpy as np

from hookloop.errors import HookloopError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

CHANNELS = (1, 3, 4)  # Grey, colour, colour with opacity.
_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}


def to_pixels(image: object) -> NDArray[np.uint8]:
    """Convert an image to bytes of shape (height, width, channels), in a new array.

    A tensor has its channels first, as in torch, an array last; both may have none. Floats are
    between 0 and 1. A matplotlib figure is drawn.

    >>> to_pixels(np.ones((2, 3))).shape
    (2, 3, 1)
    """
    if hasattr(image, "savefig"):
        return draw_figure(image)
    is_tensor = hasattr(image, "detach")
    array = np.asarray(image.detach().cpu().numpy() if is_tensor else image)  # type: ignore[attr-defined]
    if array.ndim == 2:
        array = array[..., None]
    elif array.ndim == 3 and is_tensor and array.shape[0] in CHANNELS:
        array = np.moveaxis(array, 0, -1)
    if array.ndim != 3 or array.shape[-1] not in CHANNELS:
        raise HookloopError(
            f"A {type(image).__name__} of shape {tuple(np.shape(array))} is not an image: give a "
            "tensor of (channels, height, width) or an array of (height, width, channels)."
        )
    if array.dtype == np.uint8:
        return array.copy()  # The training may overwrite the original while the record waits.
    if array.dtype == np.bool_ or np.issubdtype(array.dtype, np.floating):
        # NaN would become an arbitrary byte.
        scaled = np.nan_to_num(array.astype(np.float32)).clip(0, 1) * 255
        return cast("NDArray[np.uint8]", scaled.round().astype(np.uint8))
    return cast("NDArray[np.uint8]", array.clip(0, 255).astype(np.uint8))


def draw_figure(figure: object) -> NDArray[np.uint8]:
    """Draw a matplotlib figure into pixels."""
    # Agg draws without a display, whichever backend the user has chosen.
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(cast("Figure", figure))
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return pixels of shape (height, width, channels) as the content of a PNG file.

    >>> encode_png(np.zeros((2, 2, 3), np.uint8))[1:4]
    b'PNG'
    """
    height, width, channels = pixels.shape
    # In a PNG file every row starts with the number of its filter; 0 is none.
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">2I5B", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
