"""All of torchvision, and of whatever else mmagic imports and does not need here."""

import sys

import absent
import numpy as np

np.bool8 = np.bool_  # As in NumPy 1, for which mmagic was written.
sys.modules[__name__] = absent.Absent(__name__)
sys.modules[__name__].__path__ = []
sys.modules[__name__].__version__ = "0.0"
