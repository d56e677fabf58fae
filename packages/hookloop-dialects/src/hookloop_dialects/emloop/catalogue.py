"""emloop's own hooks by the names in its configs and its tutorial."""

from __future__ import annotations

from hookloop_dialects.emloop.hooks import MODULES

_HOME = "hookloop_dialects.emloop.hooks"
_BOARD = f"{_HOME}.write_tensorboard:WriteTensorBoard"

CATALOGUE: dict[str, str] = {
    **{name: f"{_HOME}.{module}:{name}" for name, module in MODULES.items()},
    # The tutorial writes 'Tensorboard'; the class in the separate package is 'TensorBoard'.
    "WriteTensorboard": _BOARD,
    "emloop_tensorflow.hooks.WriteTensorboard": _BOARD,
    "emloop_tensorflow.hooks.WriteTensorBoard": _BOARD,
    "cxflow_tensorflow.hooks.WriteTensorBoard": _BOARD,
}
