"""The stand-in for ``pointrix.utils``."""
