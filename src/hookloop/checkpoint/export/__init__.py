"""Models for others: in formats of other programs, and published with their config."""
