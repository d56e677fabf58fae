"""The stand-in for the package ``classy_vision``."""
