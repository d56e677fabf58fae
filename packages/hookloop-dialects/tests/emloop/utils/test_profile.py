"""Measure blocks of code."""

from hookloop_dialects.emloop.utils import Timer


def test_seconds_are_added_to_a_list():
    profile = {}
    for _ in range(2):
        with Timer("work", profile):
            pass
    assert len(profile["work"]) == 2 and min(profile["work"]) >= 0
