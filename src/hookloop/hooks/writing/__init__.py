"""Hooks that send records to writers: files and trackers."""
