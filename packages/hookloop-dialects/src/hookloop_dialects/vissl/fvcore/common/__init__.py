"""The stand-in for ``fvcore.common``."""
