"""The base class of the hooks."""

import pytest

from hookloop_dialects.vissl import ClassyHook, ClassyHookFunctions
from hookloop_dialects.vissl.classy_vision.hooks.classy_hook import QuietHook


def test_a_hook_must_define_its_five_events():
    class Lacking(ClassyHook):
        def on_start(self, task): ...

    with pytest.raises(TypeError, match="abstract"):
        Lacking()


def test_a_quiet_hook_does_nothing():
    hook = QuietHook()
    for event in ("on_start", "on_phase_start", "on_step", "on_phase_end", "on_end"):
        getattr(hook, event)(None)


def test_the_state_is_live_and_keeps_what_a_checkpoint_lacks():
    hook = QuietHook()
    hook.state.old, hook.state.new = 1, 2
    state = hook.get_classy_state()
    hook.state.old = 5
    assert state == {"old": 5, "new": 2}
    hook.set_classy_state({"old": 9})
    assert (hook.state.old, hook.state.new) == (9, 2)


def test_a_hook_is_made_from_its_settings_and_knows_its_name():
    class Mine(QuietHook):
        def __init__(self, size):
            super().__init__()
            self.size = size

    assert Mine.from_config({"size": 3}).size == 3
    assert Mine.name() == "Mine"


def test_the_events_of_classy_vision():
    assert [event.name for event in ClassyHookFunctions] == [
        "on_start", "on_phase_start", "on_forward", "on_loss_and_meter", "on_step",
        "on_phase_end", "on_end",
    ]  # fmt: skip
    assert issubclass(QuietHook, ClassyHook)
