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
    from hookloop.checkpoint.saving.checkpoints import LastPointer
    from hookloop.checkpoint.store.ours import is_checkpoint_file
    from hookloop.checkpoint.store.store import load as load_checkpoint
    from hookloop.data.batch import pair_of
    from hookloop.data.portable import to_portable
    from hookloop.data.position.measures import length_of
    from hookloop.data.ranks.place import Place
    from hookloop.data.stream import Batches
    from hookloop.engine.evaluation import Evaluation
    from hookloop.engine.hook import FunctionHook
    from hookloop.engine.loop import Validation
    from hookloop.metrics.meters import Meters, Metric
    from hookloop.metrics.results import LiveResults, Results, without_phase
    from hookloop.objects.values import NO_STATE, is_equal, restore_state, to_state
    from hookloop.parallel.ranks import Ranks
    from hookloop.parallel.replicated import Replica
    from hookloop.parallel.world import assume, choose_device
    from hookloop.requests import Wanted
    from hookloop.runs.checkpoint_names import LAST, best_name, checkpoint_name
    from hookloop.runs.log import LogFile
    from hookloop.runs.policy import Rule, infer_rule
    from hookloop.runs.run_log import current_logs
    from hookloop.trainer.adapters import adapt_all, numbered
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
    "Rule",
    "Validation",
    "Wanted",
    "adapt_all",
    "assume",
    "best_name",
    "checkpoint_name",
    "choose_device",
    "current_logs",
    "infer_rule",
    "is_checkpoint_file",
    "is_equal",
    "join_divided",
    "length_of",
    "load_checkpoint",
    "load_newest",
    "numbered",
    "pair_of",
    "restore_state",
    "to_portable",
    "to_state",
    "trusted_location",
    "without_phase",
]

_PATHS = {
    "Batches": "hookloop.data.stream:Batches",
    "Evaluation": "hookloop.engine.evaluation:Evaluation",
    "FunctionHook": "hookloop.engine.hook:FunctionHook",
    "LAST": "hookloop.runs.checkpoint_names:LAST",
    "LastPointer": "hookloop.checkpoint.saving.checkpoints:LastPointer",
    "LiveResults": "hookloop.metrics.results:LiveResults",
    "LogFile": "hookloop.runs.log:LogFile",
    "Meters": "hookloop.metrics.meters:Meters",
    "Metric": "hookloop.metrics.meters:Metric",
    "NO_STATE": "hookloop.objects.values:NO_STATE",
    "Place": "hookloop.data.ranks.place:Place",
    "Ranks": "hookloop.parallel.ranks:Ranks",
    "Replica": "hookloop.parallel.replicated:Replica",
    "Results": "hookloop.metrics.results:Results",
    "Rule": "hookloop.runs.policy:Rule",
    "Validation": "hookloop.engine.loop:Validation",
    "Wanted": "hookloop.requests:Wanted",
    "adapt_all": "hookloop.trainer.adapters:adapt_all",
    "assume": "hookloop.parallel.world:assume",
    "best_name": "hookloop.runs.checkpoint_names:best_name",
    "checkpoint_name": "hookloop.runs.checkpoint_names:checkpoint_name",
    "choose_device": "hookloop.parallel.world:choose_device",
    "current_logs": "hookloop.runs.run_log:current_logs",
    "infer_rule": "hookloop.runs.policy:infer_rule",
    "is_checkpoint_file": "hookloop.checkpoint.store.ours:is_checkpoint_file",
    "is_equal": "hookloop.objects.values:is_equal",
    "join_divided": "hookloop.trainer.several_ranks:join_divided",
    "length_of": "hookloop.data.position.measures:length_of",
    "load_checkpoint": "hookloop.checkpoint.store.store:load",
    "load_newest": "hookloop.checkpoint.choose:load_newest",
    "numbered": "hookloop.trainer.adapters:numbered",
    "pair_of": "hookloop.data.batch:pair_of",
    "restore_state": "hookloop.objects.values:restore_state",
    "to_portable": "hookloop.data.portable:to_portable",
    "to_state": "hookloop.objects.values:to_state",
    "trusted_location": "hookloop.checkpoint.choose:trusted_location",
    "without_phase": "hookloop.metrics.results:without_phase",
}


def __getattr__(name: str) -> object:
    if name not in _PATHS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return load_name(globals(), _PATHS[name], name)


def __dir__() -> list[str]:
    return __all__
