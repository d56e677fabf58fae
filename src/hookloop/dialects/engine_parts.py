"""Parts of the engine for a graft, and for an alias that stands in for a whole runner.

A graft takes the place of functions that train, save and load, so it needs more of the engine than
a dialect does. These names may change with a minor version: a distribution that uses them asks for
one, as ``hookloop==0.3.*``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop.lazy import load_name

if TYPE_CHECKING:
    from hookloop.checkpoint.choose import load_newest, trusted_location
    from hookloop.checkpoint.store.ours import is_checkpoint_file
    from hookloop.checkpoint.store.pointer import LastPointer
    from hookloop.checkpoint.store.store import load as load_checkpoint
    from hookloop.data.ranks.place import Place
    from hookloop.data.stream import Batches
    from hookloop.engine.evaluation import Evaluation
    from hookloop.engine.hook import FunctionHook
    from hookloop.engine.loop import Validation
    from hookloop.metrics.meters import Meters, Metric
    from hookloop.metrics.results import LiveResults, Results
    from hookloop.objects.attributes import NO_STATE, is_equal, restore_state, to_state
    from hookloop.parallel.ranks import Ranks
    from hookloop.parallel.replicated import Replica
    from hookloop.parallel.world import assume
    from hookloop.requests import Wanted
    from hookloop.runs.checkpoint_names import LAST, best_name, checkpoint_name
    from hookloop.runs.log import LogFile
    from hookloop.runs.run_log import current_logs
    from hookloop.trainer.adapters import numbered
    from hookloop.trainer.several_ranks import join_divided

__all__ = [
    "LAST",
    "NO_STATE",
    "Batches",
    "Evaluation",
    "FunctionHook",
    "LastPointer",
    "LiveResults",
    "LogFile",
    "Meters",
    "Metric",
    "Place",
    "Ranks",
    "Replica",
    "Results",
    "Validation",
    "Wanted",
    "assume",
    "best_name",
    "checkpoint_name",
    "current_logs",
    "is_checkpoint_file",
    "is_equal",
    "join_divided",
    "load_checkpoint",
    "load_newest",
    "numbered",
    "restore_state",
    "to_state",
    "trusted_location",
]

_PATHS = {
    "Batches": "hookloop.data.stream:Batches",
    "Evaluation": "hookloop.engine.evaluation:Evaluation",
    "FunctionHook": "hookloop.engine.hook:FunctionHook",
    "LAST": "hookloop.runs.checkpoint_names:LAST",
    "LastPointer": "hookloop.checkpoint.store.pointer:LastPointer",
    "LiveResults": "hookloop.metrics.results:LiveResults",
    "LogFile": "hookloop.runs.log:LogFile",
    "Meters": "hookloop.metrics.meters:Meters",
    "Metric": "hookloop.metrics.meters:Metric",
    "NO_STATE": "hookloop.objects.attributes:NO_STATE",
    "Place": "hookloop.data.ranks.place:Place",
    "Ranks": "hookloop.parallel.ranks:Ranks",
    "Replica": "hookloop.parallel.replicated:Replica",
    "Results": "hookloop.metrics.results:Results",
    "Validation": "hookloop.engine.loop:Validation",
    "Wanted": "hookloop.requests:Wanted",
    "assume": "hookloop.parallel.world:assume",
    "best_name": "hookloop.runs.checkpoint_names:best_name",
    "checkpoint_name": "hookloop.runs.checkpoint_names:checkpoint_name",
    "current_logs": "hookloop.runs.run_log:current_logs",
    "is_checkpoint_file": "hookloop.checkpoint.store.ours:is_checkpoint_file",
    "is_equal": "hookloop.objects.attributes:is_equal",
    "join_divided": "hookloop.trainer.several_ranks:join_divided",
    "load_checkpoint": "hookloop.checkpoint.store.store:load",
    "load_newest": "hookloop.checkpoint.choose:load_newest",
    "numbered": "hookloop.trainer.adapters:numbered",
    "restore_state": "hookloop.objects.attributes:restore_state",
    "to_state": "hookloop.objects.attributes:to_state",
    "trusted_location": "hookloop.checkpoint.choose:trusted_location",
}


def __getattr__(name: str) -> object:
    if name not in _PATHS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return load_name(globals(), _PATHS[name], name)


def __dir__() -> list[str]:
    return __all__
