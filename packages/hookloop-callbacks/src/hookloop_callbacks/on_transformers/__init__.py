"""Callbacks of Transformers at the mount points of hookloop."""
