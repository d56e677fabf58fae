"""No transform: mmpretrain registers whatever it finds here."""


class RandomResizedCrop:
    """The base of a transform that the tests do not use."""
