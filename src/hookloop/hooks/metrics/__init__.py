"""Hooks that compute metrics, or keep what they are computed from."""
