"""The stand-in for ``classy_vision.generic``."""
