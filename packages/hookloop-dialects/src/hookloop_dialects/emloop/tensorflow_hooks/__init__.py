"""Stands in for the package ``emloop_tensorflow``."""
