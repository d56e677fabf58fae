"""The stand-in for ``iopath.common``."""
