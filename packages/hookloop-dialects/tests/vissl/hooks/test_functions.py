"""The names of VISSL's events."""

from hookloop_dialects.vissl import ClassyHookFunctions
from hookloop_dialects.vissl.hooks import SSLClassyHookFunctions


def test_the_events_of_vissl_have_on_exception():
    assert len(SSLClassyHookFunctions) == 10


def test_the_events_of_classy_vision_are_among_them_in_order():
    names = [event.name for event in SSLClassyHookFunctions]
    classy = [event.name for event in ClassyHookFunctions]
    assert [name for name in names if name in classy] == classy
    assert names[-1] == "on_exception"
