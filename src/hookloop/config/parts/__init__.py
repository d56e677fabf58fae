"""Resolve and check the objects that a config describes, before any of them is built."""
