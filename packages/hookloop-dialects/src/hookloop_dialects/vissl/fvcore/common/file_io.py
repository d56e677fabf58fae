"""``fvcore.common.file_io``: files by their paths."""

from __future__ import annotations

from hookloop_dialects.vissl.iopath.common.file_io import g_pathmgr as PathManager

__all__ = ["PathManager"]
