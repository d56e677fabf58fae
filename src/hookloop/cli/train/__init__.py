"""Commands that begin, continue, try and check a training."""
