"""Stands in for the package ``classy_vision``."""
