"""The generators of random numbers: their states, and what samples, workers and hooks draw."""
