"""Go back to iterations of a run: repeat them, look at them, compare them."""
