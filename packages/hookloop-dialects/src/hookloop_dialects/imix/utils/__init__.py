"""``imix.utils``: what hook files of iMIX import from it, each from the module of that name."""
