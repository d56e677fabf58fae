"""``pointrix.utils``: what hook files import from there."""
