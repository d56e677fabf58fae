"""The stand-in for ``vissl.losses``."""
