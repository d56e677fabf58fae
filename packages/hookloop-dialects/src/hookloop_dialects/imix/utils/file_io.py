"""``imix.utils.file_io``: `PathManager` under the path of older versions."""

from __future__ import annotations

from hookloop_dialects.imix.utils.third_party_libs import PathManager

__all__ = ["PathManager"]
