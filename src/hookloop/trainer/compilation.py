"""A model compiled in place: its class, its state's keys and its hooks stay what they are.

``nn.Module.compile`` compiles nothing for a module of torch's own, such as ``nn.Sequential``, and
``torch.compile(model)`` renames the keys of the state. So ``forward`` is compiled, through a
function of ours, and takes its place whenever the model is called. Copies of the model are plain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import FunctionType, SimpleNamespace
from typing import Protocol, cast

import torch
from torch import nn

from hookloop.errors import ModelError, nearest

Compile = bool | Mapping[str, object]
"""Whether to compile, or the options to pass to ``torch.compile``."""

OPTIONS = ("mode", "backend", "dynamic", "fullgraph", "options")

_log = logging.getLogger("hookloop")


def compile_model(model: nn.Module, compile: Compile | None) -> Compilation | None:
    """Compile a model in place, if asked to.

    Raises:
        ModelError: If an option is unknown, or has a value that torch does not know.
    """
    if compile is None or compile is False:
        return None
    if compile is not True and not isinstance(compile, Mapping):
        raise ModelError(
            f"compile={compile!r}: write True, or the options of torch.compile: "
            f"{{'mode': {compile!r}}}.",
            argument="compile",
        )
    options = {} if compile is True else dict(compile)
    for name in options:
        if name not in OPTIONS:
            raise ModelError(
                f"compile= has no option '{name}'.{nearest(str(name), OPTIONS)} There are: "
                f"{', '.join(OPTIONS)}.",
                argument="compile",
            )
    # The wrapper that torch.compile returns keeps the model under this name.
    if hasattr(model, "_orig_mod"):
        raise ModelError(
            "model= was compiled with torch.compile already, which renames the keys of its state: "
            "give the model itself, with compile=.",
            argument="model",
        )
    return Compilation(model, options)


class _Config(Protocol):
    """The part of the compiler's config that is set here."""

    skip_nnmodule_hook_guards: bool


def _compiler_config() -> _Config:
    try:
        from torch._dynamo import config
    except ImportError:  # A torch that keeps it elsewhere; its own default holds then.
        return cast("_Config", SimpleNamespace(skip_nnmodule_hook_guards=False))
    return cast("_Config", config)


class Compilation:
    """Replaces a model's ``__call__``, and reports when there was nothing to compile.

    Args:
        model: The model.
        options: Options of ``torch.compile``.
    """

    def __init__(self, model: nn.Module, options: Mapping[str, object]) -> None:
        if not hasattr(nn.Module, "_call_impl"):
            raise ModelError(
                f"compile= cannot compile in place with torch {torch.__version__}: leave it out, "
                "and compile parts of the model yourself.",
                argument="compile",
            )
        self._model = model
        self._config = _compiler_config()
        self._backend = str(options.get("backend", "inductor"))
        self._graphs = 0
        self._calls = 0
        try:
            # torch checks the options here. The model itself is compiled at its first call.
            self._forward = torch.compile(_own_function(model.forward), **options)  # type: ignore[call-overload]
        except Exception as error:
            raise ModelError(f"compile={dict(options)!r}: {error}", argument="compile") from error
        # torch calls this instead of `_call_impl`, and leaves it out of copies and pickles.
        model._compiled_call_impl = self

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the model, its hooks and its compiled forward pass."""
        model, config, own = self._model, self._config, vars(self._model)
        before = getattr(config, "skip_nnmodule_hook_guards", False)
        hidden = own.get("forward")  # Set on the instance by the user, if at all.
        # Otherwise module hooks that are added or removed after the first call would be ignored.
        config.skip_nnmodule_hook_guards = False
        # Only during the call: an entry that stayed would be copied with the model.
        own["forward"] = self._forward if self._calls else self._first
        try:
            return model._call_impl(*args, **kwargs)  # type: ignore[no-untyped-call]
        except Exception as error:
            if type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
                error.add_note(
                    f"while the model was compiled with the backend '{self._backend}': "
                    "compile={'backend': 'aot_eager'} needs no compiler, compile=False no backend"
                )
            raise
        finally:
            config.skip_nnmodule_hook_guards = before
            if hidden is None:
                del own["forward"]
            else:
                own["forward"] = hidden

    def _first(self, *args: object, **kwargs: object) -> object:
        before = _graphs()
        output = self._forward(*args, **kwargs)
        self._calls += 1
        if before is not None and _graphs() == before:
            _log.warning(
                "compile= has compiled nothing of %s: its forward pass has no part that torch can "
                "turn into a graph, and runs as if compile were False. TORCH_LOGS=graph_breaks "
                "shows why.",
                type(self._model).__name__,
            )
        return output

    def report(self) -> None:
        """Report a model that was never called, so that nothing was compiled."""
        if not self._calls:
            _log.warning(
                "compile= has compiled nothing: the model itself was never called. A step has to "
                "call run.model(...); other methods of the model are not compiled."
            )


def _own_function(forward: Callable[..., object]) -> Callable[..., object]:
    """Return a function with its own code object, by which torch caches and limits compilations."""

    def call_forward(*args: object, **kwargs: object) -> object:
        return forward(*args, **kwargs)

    # torch stops compiling a code object after a few variants of it. If all models shared one, the
    # later models of a process would not be compiled.
    return FunctionType(
        call_forward.__code__.replace(), globals(), "call_forward", None, call_forward.__closure__
    )


def _graphs() -> int | None:
    """Count the graphs that were captured in this process; None where torch does not show it."""
    try:
        from torch._dynamo.utils import counters
    except ImportError:
        return None
    return int(counters["stats"]["unique_graphs"])
