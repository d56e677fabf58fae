"""The stand-in for ``fvcore``."""
