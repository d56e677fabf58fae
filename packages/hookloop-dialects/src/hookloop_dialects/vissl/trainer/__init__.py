"""The stand-in for ``vissl.trainer``."""
