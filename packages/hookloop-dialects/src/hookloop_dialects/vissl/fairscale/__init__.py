"""The stand-in for ``fairscale``."""
