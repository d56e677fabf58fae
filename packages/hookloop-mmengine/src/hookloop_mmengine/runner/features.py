"""What a config asks of the model: recompute activations, compile a step, plain batch norms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from hookloop.errors import ModelError

_WRAPPERS = (None, "MMDistributedDataParallel", "DistributedDataParallel")


def check_features(cfg: Mapping[str, object], *, is_alone: bool) -> None:
    """Reject the features that are not offered, before anything is built."""
    if cfg.get("efficient_conv_bn_eval") is not None:
        raise ModelError(
            "efficient_conv_bn_eval is not offered: it rewrites the model's graph. Remove it from "
            "the config; it changes the speed of the training only."
        )
    compiled = cfg.get("compile")
    if not isinstance(compiled, bool | Mapping | None):
        raise TypeError(f"`compile` should be a dict or bool, got {type(compiled)}")
    if is_alone:  # One process has no use for what follows, in MMEngine either.
        return
    if cfg.get("sync_bn") is not None:
        raise ModelError(
            f"sync_bn={cfg.get('sync_bn')!r} is not offered. Remove it, or use a norm that does "
            "not depend on the batch, such as GroupNorm."
        )
    wrapper = cast("Mapping[str, object]", cfg.get("model_wrapper_cfg") or {})
    kind = wrapper.get("type")
    if (kind if isinstance(kind, str | None) else getattr(kind, "__name__", "")) not in _WRAPPERS:
        raise ModelError(
            f"model_wrapper_cfg: the wrapper {kind!r} is not offered. Remove it: hookloop averages "
            "the gradients of several processes itself."
        )


def with_plain_norms(model: nn.Module) -> nn.Module:
    """Replace synchronized batch norms by plain ones, as MMEngine does for a single process."""
    for name, child in list(model.named_children()):
        replaced = with_plain_norms(child)
        if replaced is not child:
            setattr(model, name, replaced)
    if not isinstance(model, nn.SyncBatchNorm):
        return model
    plain = AnyBatchNorm(
        model.num_features, model.eps, model.momentum, model.affine, model.track_running_stats
    )
    # The same tensors: an optimizer may hold them already.
    for name, tensor in (*model._parameters.items(), *model._buffers.items()):
        setattr(plain, name, tensor)
    return plain.train(model.training)


class AnyBatchNorm(nn.modules.batchnorm._BatchNorm):
    """A batch norm for inputs of any number of dimensions, as the synchronized one is."""

    def _check_input_dim(self, input: torch.Tensor) -> None:
        """Accept any."""


def recompute_activations(model: nn.Module, names: str | Sequence[str]) -> None:
    """Compute the activations of some modules again in backward, to keep less in memory."""
    for name in [names] if isinstance(names, str) else names:
        try:
            module = model.get_submodule(name)
        except AttributeError as error:
            raise ModelError(f"activation_checkpointing: the model has no '{name}'.") from error
        # Once: a second train() of a runner meets the same module.
        if not hasattr(module.forward, "recomputes"):
            module.forward = _recomputing(module.forward)


def _recomputing(forward: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(forward)
    def wrapper(*args: object, **kwargs: object) -> object:
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)  # type: ignore[arg-type]

    wrapper.recomputes = True  # type: ignore[attr-defined]
    return wrapper


def compile_step(model: nn.Module, options: object, name: str) -> None:
    """Compile a step of a model, as ``compile=True`` or a dict of options asks for."""
    if options is None or options is False:
        return
    arguments = dict(options) if isinstance(options, Mapping) else {}
    # Once, for the same reason.
    if name not in vars(model):
        setattr(model, name, torch.compile(getattr(model, name), **arguments))
