"""The names that files import from ``emloop_tensorflow.hooks``."""

from __future__ import annotations

from hookloop_dialects.emloop.hooks.write_tensorboard import WriteTensorBoard

WriteTensorboard = WriteTensorBoard  # The spelling of emloop's tutorial.

__all__ = ["WriteTensorBoard", "WriteTensorboard"]
