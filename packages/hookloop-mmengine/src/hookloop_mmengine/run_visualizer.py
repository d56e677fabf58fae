"""The visualizer that hooks find in a native run: the project's own, if it has one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop_mmengine.registry import VISUALIZERS
from hookloop_mmengine.visualization import EmittingVisualizer, Visualizer

if TYPE_CHECKING:
    from hookloop import Run


def visualizer_of(run: Run) -> object:
    """Return the visualizer of a run, which is also the current instance.

    One that the config describes counts first, then the newest that the project has made.
    """
    described = run.config.get("visualizer")
    if isinstance(described, Mapping):
        given = {"type": "Visualizer", "name": "visualizer", "save_dir": str(run.dir), **described}
        return VISUALIZERS.build(given)
    own = [one for one in _instances() if not getattr(one, "belongs_to_runner", False)]
    if own:
        return own[-1]
    emitting = EmittingVisualizer(run)
    # Removed first, so that it is the newest also in a second run of this process.
    Visualizer._instance_dict.pop(emitting.instance_name, None)
    Visualizer._instance_dict[emitting.instance_name] = emitting
    return emitting


def _instances() -> list[object]:
    """List the visualizers of the project in the order of their creation."""
    # The real package may be installed, and its classes then hold the instances.
    real = getattr(sys.modules.get("mmengine.visualization"), "Visualizer", None)
    made = [*Visualizer._instance_dict.values(), *getattr(real, "_instance_dict", {}).values()]
    return [one for one in made if not isinstance(one, EmittingVisualizer)]
