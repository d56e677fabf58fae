"""The stand-in for ``imix.engine``."""
