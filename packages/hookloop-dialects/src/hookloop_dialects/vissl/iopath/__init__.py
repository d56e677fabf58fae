"""The stand-in for ``iopath``."""
