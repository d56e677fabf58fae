"""Stands in for ``imix.engine``."""
