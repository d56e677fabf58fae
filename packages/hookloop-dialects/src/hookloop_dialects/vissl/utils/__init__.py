"""The stand-in for ``vissl.utils``."""
