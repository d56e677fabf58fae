"""``transformers.utils``: its loggers."""

from __future__ import annotations

import logging as _logging


class logging:
    """``transformers.utils.logging``."""

    @staticmethod
    def get_logger(name: str | None = None) -> _logging.Logger:
        """Return a logger below that of the package."""
        return _logging.getLogger(f"transformers.{name}" if name else "transformers")
