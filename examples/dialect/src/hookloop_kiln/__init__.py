"""Glazes, the hooks of an invented training system: `import kiln` under an alias."""

from hookloop_kiln.glazes import GLAZES, Glaze

__all__ = ["GLAZES", "Glaze"]
