"""What a training changes in plain attributes of a foreign hook that declares no state."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hookloop.objects.values import NO_STATE, is_equal, restore_state, to_state


class ChangedAttributes:
    """The attributes of an object that have another value than when the training began.

    A setting never changes, so a new one is obeyed after a resume.

    Args:
        owner: The object.
        is_state: Returns whether to keep an attribute, given its name and value.
    """

    def __init__(self, owner: object, is_state: Callable[[str, object], bool]) -> None:
        self._owner = owner
        self._is_state = is_state
        self._initial: dict[str, object] = {}
        self._loaded: Mapping[str, object] = {}

    def settle(self) -> None:
        """Note the attributes as the hook has them now, then restore those of a checkpoint."""
        self._initial = self._current()
        for name, state in self._loaded.items():
            if _is_kept(state):  # A file of an earlier version has others, too.
                old = getattr(self._owner, name, None)
                setattr(self._owner, name, restore_state(old, state))
        self._loaded = {}

    def state_dict(self) -> dict[str, object]:
        """Return what has changed."""
        initial = self._initial
        return {
            name: state
            for name, state in self._current().items()
            if name not in initial or not is_equal(initial[name], state)
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take what `settle` is to restore."""
        self._loaded = state

    def _current(self) -> dict[str, object]:
        own = [(name, one) for name, one in vars(self._owner).items() if self._is_state(name, one)]
        states = {name: to_state(value) for name, value in own}
        return {name: state for name, state in states.items() if _is_kept(state)}


def _is_kept(state: object) -> bool:
    """Return whether a checkpoint keeps an attribute; a flag is not kept.

    A flag mostly says that something was done once, such as another pipeline that was set. A new
    process has to do it again.
    """
    return state is not NO_STATE and not isinstance(state, bool)
