"""Dialects: hooks written for another system run as they are.

A dialect is a plug-in: a `Dialect` that a package lists in the entry-point group
``hookloop.dialects``. It has an adapter (turns a foreign hook into native ones), usually a facade
(the run in the form of that system's runner, task or trainer), a catalogue (that system's own
hooks, built from ours) and modules named like the foreign ones, for files that import them.

    Dialect         the description of one foreign system
    installed       the installed dialects by name
    alias           let files import a foreign package that is not installed
    graft           put our engine under a foreign package that is installed
    catalogued      which dialects have a hook of a name

What a dialect is made of, for packages that bring one:

    Adapter         a foreign hook as a native one: its methods are called at our mount points
    Mount           which foreign method is called at which point, and how
    Facade          the run in the form that foreign hooks expect; ForeignAttributeError names
                    what it does not offer
    Companion       a native hook that keeps what the hooks of a dialect share in a run
    Driven          a Trainer that the runner of another system drives
    Catalogued      a foreign hook whose work native hooks do
    ConfigView      a config with attributes and items
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from hookloop import beside
from hookloop.lazy import load_name
from hookloop.trainer.adapters import Dialect, adapt, adapt_all, dialect_of, named
from hookloop.trainer.adapters import dialects as installed

if TYPE_CHECKING:
    from hookloop.checkpoint.choose import trusted_location
    from hookloop.checkpoint.store.ours import is_checkpoint_file
    from hookloop.data.batch import is_pair, is_scalar, pair_of, size_of
    from hookloop.data.mixing.mixture import TrainingStream
    from hookloop.data.portable import to_portable, write_portable
    from hookloop.data.position.measures import length_of
    from hookloop.data.random.states import GeneratorStates, seed_all
    from hookloop.data.stream import Stream
    from hookloop.dialects.adapter import (
        Adapter,
        Catalogued,
        Facade,
        ForeignAttributeError,
        Method,
        Mount,
        base_of,
        overridden,
    )
    from hookloop.dialects.aliases import Alias
    from hookloop.dialects.changed_attributes import ChangedAttributes
    from hookloop.dialects.companion import Companion, facade_in
    from hookloop.dialects.config_view import ConfigView, with_own_values
    from hookloop.dialects.driven import Driven
    from hookloop.dialects.grafts import Graft, Grafts
    from hookloop.dialects.lazy import import_name, lazy_names
    from hookloop.dialects.left_to_loop import LeftToLoop
    from hookloop.dialects.names import Names
    from hookloop.dialects.places import place_of
    from hookloop.dialects.waiting import Waiting
    from hookloop.engine.checks import matches
    from hookloop.engine.hook import Call
    from hookloop.engine.internals import internals_of, plan_of
    from hookloop.engine.outputs import output_of
    from hookloop.metrics.confusion import (
        Average,
        accuracy,
        average_scores,
        class_scores,
        confusion_matrix,
    )
    from hookloop.metrics.meters import Meters
    from hookloop.metrics.moments import Moments
    from hookloop.metrics.series import Series
    from hookloop.metrics.store import MetricStore
    from hookloop.parallel.ranks import Ranks
    from hookloop.parallel.replicated import Replica
    from hookloop.parallel.world import World, choose_device
    from hookloop.runs.csv_cells import safe_row
    from hookloop.runs.files import (
        append,
        drafted,
        make_folder,
        open_to_append,
        write_bytes,
        write_text,
    )
    from hookloop.runs.log import LogFile
    from hookloop.runs.plain_yaml import dump as dump_yaml
    from hookloop.runs.plain_yaml import number_floats
    from hookloop.runs.records import plain, to_json
    from hookloop.runs.run_log import note_in_log
    from hookloop.trainer.default_hooks import KNOWN_HOOKS
    from hookloop.writers.base import require


def stand_in(path: str) -> str:
    """Replace a path into a foreign package that is not installed by the path of our stand-in."""
    package, dot, rest = path.partition(".")
    for dialect in installed().values() if dot else ():
        # An installed package wins: its own classes are adapted, whatever their version.
        if package in dialect.packages and find_spec(package) is None:
            return f"{dialect.packages[package]}.{rest}"
    return path


def registered(name: str) -> object:
    """Return a class that a file registered with a foreign decorator, or None."""
    for dialect in sorted(installed().values(), key=lambda one: one.name not in chosen()):
        for module, registry, attribute in dialect.registries:
            # A registry whose module was never imported is empty, so it is not imported here.
            holder = getattr(sys.modules.get(module), registry, None)
            found = getattr(holder, attribute, {}).get(name)
            if found is not None:
                return cast("object", found)
    return None


def chosen() -> tuple[str, ...]:
    """Return the dialects that were chosen for this process, with ``--alias`` for example."""
    # They are kept where they take effect, among the finders of imports, so that an `undo` ends
    # both.
    return tuple(
        name for finder in sys.meta_path for name in getattr(finder, "chosen_dialects", ())
    )


def catalogued(name: str, section: str = "") -> dict[str, str]:
    """Return the paths of a hook by dialect, for those dialects that a config can mean.

    Of several, the ones that were chosen on the command line count; then those that have the
    section of the config in which the name is written.

    Args:
        name: The name of the hook.
        section: The key of the config under which it is written.
    """
    systems = {dialect.name: dialect for dialect in installed().values()}
    found = {
        system: names[name]
        for system, dialect in systems.items()
        if name in (names := dialect.catalogue())
    }
    for meant in (
        chosen(),
        [system for system, dialect in systems.items() if section in dialect.sections],
    ):
        if len(found) > 1:
            found = {system: found[system] for system in found if system in meant} or found
    return found


def alias_hint(error: BaseException) -> str:
    """Return how to import a foreign package that is missing; empty for any other error."""
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    package = name.partition(".")[0]
    for dialect in installed().values():
        if name in dialect.former:
            return dialect.former[name]
        # Under the alias, the message says already what our modules lack.
        if package in dialect.packages and dialect.name not in chosen():
            return f"--alias {dialect.name} lets files import '{package}' without it."
    for name in beside.dialects_of_package(package):
        if name not in installed():
            return (
                f"With {beside.install(name)}, --alias {name} lets files import '{package}' "
                "without it."
            )
    return ""


def alias(*names: str) -> Alias:
    """Let files import foreign packages that are not installed; see `hookloop.dialects.aliases`."""
    # Imported here because `import hookloop.dialects` happens in every run that has a config.
    from hookloop.dialects.aliases import Alias

    return Alias([named(name) for name in names])


def graft(*names: str) -> Grafts:
    """Put our engine under foreign packages that are installed, until ``undo()``.

    It also works as a ``with`` block. What scripts import stays the real package. A package that is
    grafted already stays so until its first graft is undone.

    Raises:
        HookError: If there is no graft of this name, or its package is not installed.
    """
    from hookloop.dialects.grafts import Grafts, missing_graft

    dialects = {name: named(name) for name in names}
    for dialect in dialects.values():
        if (problem := missing_graft(dialect, installed().values())) is not None:
            raise problem
    return Grafts({name: one.graft for name, one in dialects.items() if one.graft is not None})


# Imported when they are first used: only a run with foreign hooks needs them.
_PATHS = {
    "Adapter": "hookloop.dialects.adapter:Adapter",
    "Average": "hookloop.metrics.confusion:Average",
    "Call": "hookloop.engine.hook:Call",
    "Catalogued": "hookloop.dialects.adapter:Catalogued",
    "ChangedAttributes": "hookloop.dialects.changed_attributes:ChangedAttributes",
    "Companion": "hookloop.dialects.companion:Companion",
    "ConfigView": "hookloop.dialects.config_view:ConfigView",
    "Driven": "hookloop.dialects.driven:Driven",
    "Facade": "hookloop.dialects.adapter:Facade",
    "ForeignAttributeError": "hookloop.dialects.adapter:ForeignAttributeError",
    "GeneratorStates": "hookloop.data.random.states:GeneratorStates",
    "Graft": "hookloop.dialects.grafts:Graft",
    "KNOWN_HOOKS": "hookloop.trainer.default_hooks:KNOWN_HOOKS",
    "LeftToLoop": "hookloop.dialects.left_to_loop:LeftToLoop",
    "LogFile": "hookloop.runs.log:LogFile",
    "Meters": "hookloop.metrics.meters:Meters",
    "Method": "hookloop.dialects.adapter:Method",
    "MetricStore": "hookloop.metrics.store:MetricStore",
    "Moments": "hookloop.metrics.moments:Moments",
    "Mount": "hookloop.dialects.adapter:Mount",
    "Names": "hookloop.dialects.names:Names",
    "Ranks": "hookloop.parallel.ranks:Ranks",
    "Replica": "hookloop.parallel.replicated:Replica",
    "Series": "hookloop.metrics.series:Series",
    "Stream": "hookloop.data.stream:Stream",
    "TrainingStream": "hookloop.data.mixing.mixture:TrainingStream",
    "Waiting": "hookloop.dialects.waiting:Waiting",
    "World": "hookloop.parallel.world:World",
    "accuracy": "hookloop.metrics.confusion:accuracy",
    "append": "hookloop.runs.files:append",
    "average_scores": "hookloop.metrics.confusion:average_scores",
    "base_of": "hookloop.dialects.adapter:base_of",
    "choose_device": "hookloop.parallel.world:choose_device",
    "class_scores": "hookloop.metrics.confusion:class_scores",
    "confusion_matrix": "hookloop.metrics.confusion:confusion_matrix",
    "drafted": "hookloop.runs.files:drafted",
    "dump_yaml": "hookloop.runs.plain_yaml:dump",
    "facade_in": "hookloop.dialects.companion:facade_in",
    "import_name": "hookloop.dialects.lazy:import_name",
    "is_checkpoint_file": "hookloop.checkpoint.store.ours:is_checkpoint_file",
    "is_pair": "hookloop.data.batch:is_pair",
    "is_scalar": "hookloop.data.batch:is_scalar",
    "lazy_names": "hookloop.dialects.lazy:lazy_names",
    "length_of": "hookloop.data.position.measures:length_of",
    "make_folder": "hookloop.runs.files:make_folder",
    "internals_of": "hookloop.engine.internals:internals_of",
    "matches": "hookloop.engine.checks:matches",
    "note_in_log": "hookloop.runs.run_log:note_in_log",
    "number_floats": "hookloop.runs.plain_yaml:number_floats",
    "open_to_append": "hookloop.runs.files:open_to_append",
    "output_of": "hookloop.engine.outputs:output_of",
    "plan_of": "hookloop.engine.internals:plan_of",
    "overridden": "hookloop.dialects.adapter:overridden",
    "pair_of": "hookloop.data.batch:pair_of",
    "place_of": "hookloop.dialects.places:place_of",
    "plain": "hookloop.runs.records:plain",
    "require": "hookloop.writers.base:require",
    "safe_row": "hookloop.runs.csv_cells:safe_row",
    "seed_all": "hookloop.data.random.states:seed_all",
    "size_of": "hookloop.data.batch:size_of",
    "to_json": "hookloop.runs.records:to_json",
    "to_portable": "hookloop.data.portable:to_portable",
    "trusted_location": "hookloop.checkpoint.choose:trusted_location",
    "with_own_values": "hookloop.dialects.config_view:with_own_values",
    "write_bytes": "hookloop.runs.files:write_bytes",
    "write_portable": "hookloop.data.portable:write_portable",
    "write_text": "hookloop.runs.files:write_text",
}


def __getattr__(name: str) -> object:
    if name not in _PATHS:
        raise AttributeError(f"module 'hookloop.dialects' has no attribute '{name}'")
    return load_name(globals(), _PATHS[name], name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "KNOWN_HOOKS",
    "Adapter",
    "Average",
    "Call",
    "Catalogued",
    "ChangedAttributes",
    "Companion",
    "ConfigView",
    "Dialect",
    "Driven",
    "Facade",
    "ForeignAttributeError",
    "GeneratorStates",
    "Graft",
    "LeftToLoop",
    "LogFile",
    "Meters",
    "Method",
    "MetricStore",
    "Moments",
    "Mount",
    "Names",
    "Ranks",
    "Replica",
    "Series",
    "Stream",
    "TrainingStream",
    "Waiting",
    "World",
    "accuracy",
    "adapt",
    "adapt_all",
    "alias",
    "append",
    "average_scores",
    "base_of",
    "choose_device",
    "class_scores",
    "confusion_matrix",
    "dialect_of",
    "drafted",
    "dump_yaml",
    "facade_in",
    "graft",
    "import_name",
    "installed",
    "internals_of",
    "is_checkpoint_file",
    "is_pair",
    "is_scalar",
    "lazy_names",
    "length_of",
    "make_folder",
    "matches",
    "note_in_log",
    "number_floats",
    "open_to_append",
    "output_of",
    "overridden",
    "pair_of",
    "place_of",
    "plain",
    "plan_of",
    "require",
    "safe_row",
    "seed_all",
    "size_of",
    "to_json",
    "to_portable",
    "trusted_location",
    "with_own_values",
    "write_bytes",
    "write_portable",
    "write_text",
]
