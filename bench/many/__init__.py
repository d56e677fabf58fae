"""The same work on many ranks, by hand and by each engine."""
