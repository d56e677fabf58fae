"""Stands in for ``classy_vision.generic``."""
