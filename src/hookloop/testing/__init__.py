"""What a project needs to test its hooks: a tiny run, a recording hook, a device, and checks.

    from hookloop.testing import assert_hook_contract

    def test_my_hook():
        assert_hook_contract(MyHook)

Each check trains for real, in a temporary directory, in a fraction of a second. It raises an
`AssertionError` that says what the hook did and what it should do instead.
"""

from hookloop.testing.checks import (
    RecordCalls,
    assert_hook_contract,
    assert_only_observes,
    assert_resumes_exactly,
    assert_same_bits,
    tiny_trainer,
)
from hookloop.testing.counting_device import CountingDevice, HostRead, HostReadError
from hookloop.testing.device_reads import assert_no_host_reads, host_reads

__all__ = [
    "CountingDevice",
    "HostRead",
    "HostReadError",
    "RecordCalls",
    "assert_hook_contract",
    "assert_no_host_reads",
    "assert_only_observes",
    "assert_resumes_exactly",
    "assert_same_bits",
    "host_reads",
    "tiny_trainer",
]
