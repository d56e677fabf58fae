"""What a project needs to test its hooks: a tiny run, a recording hook, a device, and checks.

    from hookloop.testing import assert_hook_contract

    def test_my_hook():
        assert_hook_contract(MyHook)

Each check trains for real, in a temporary directory, in a fraction of a second. It raises an
`AssertionError` that says what the hook did and what it should do instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.lazy import load_name
from hookloop.testing.checks import (
    RecordCalls,
    assert_hook_contract,
    assert_only_observes,
    assert_resumes_exactly,
    assert_same_bits,
    tiny_trainer,
)

if TYPE_CHECKING:
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

_DEVICE = "hookloop.testing.counting_device"
_READS = "hookloop.testing.device_reads"
_MODULE_OF = {
    "CountingDevice": _DEVICE,
    "HostRead": _DEVICE,
    "HostReadError": _DEVICE,
    "assert_no_host_reads": _READS,
    "host_reads": _READS,
}
"""Names whose import adds a device to torch: only who uses it gets one."""


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return load_name(globals(), _MODULE_OF[name], name)
