"""A module with a state of its own, as helpers of a script have it."""

CALLS = 0


def next_scale():
    """Return a larger number with each call."""
    global CALLS  # noqa: PLW0603 - what is tested
    CALLS += 1
    return 1 + 0.1 * CALLS
