"""Plans for models larger than a rank: which layers are split over ranks, and how.

A plan is a function of the model and of torch's mesh of the ranks that split it. It calls torch's
`parallelize_module`. What it leaves out is whole on each of these ranks.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from hookloop.errors import HookloopError, nearest

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from hookloop.parallel.settings import Plan


def find_plan(plan: Plan) -> Callable[[nn.Module, DeviceMesh], object]:
    """Return a plan by its name or path."""
    if not isinstance(plan, str):
        return plan
    if plan in READY:
        return READY[plan]
    try:
        found = pkgutil.resolve_name(plan)
    except (ImportError, AttributeError, ValueError) as error:
        raise HookloopError(
            f"parallel: the plan '{plan}' cannot be imported: {error}.{nearest(plan, READY)} Write "
            f"the path of a function, my_project.parallelize, or one of {', '.join(READY)}.",
            argument="parallel",
        ) from error
    if not callable(found):
        raise HookloopError(
            f"parallel: the plan '{plan}' is {found!r}: it must be a function of the model and the "
            "mesh.",
            argument="parallel",
        )
    return cast("Callable[[nn.Module, DeviceMesh], object]", found)


def split_transformer_encoder(model: nn.Module, mesh: DeviceMesh) -> None:
    """Split the feed-forward parts of torch's own transformer layers.

    Their attention keeps its projections in one packed matrix, and is whole on each rank.
    """
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    for layer in model.modules():
        if isinstance(layer, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            plan = {"linear1": ColwiseParallel(), "linear2": RowwiseParallel()}
            parallelize_module(layer, mesh, plan)
            # The fused kernel of evaluations knows whole weights only.
            layer.activation_relu_or_gelu = 0


def follow_tp_plan(model: nn.Module, mesh: DeviceMesh) -> None:
    """Split a model of transformers as its own ``tp_plan`` says."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    written = cast("Any", model)
    wanted = getattr(written, "tp_plan", None) or getattr(written, "_tp_plan", None)
    if not isinstance(wanted, Mapping) or not wanted:
        raise HookloopError(
            f"parallel: plan 'tp_plan' follows the tp_plan of a model of transformers, which "
            f"{type(model).__name__} does not have: write a function of the model and the mesh.",
            argument="parallel",
        )
    kinds: dict[str, Callable[[], Any]] = {
        "colwise": ColwiseParallel,
        "rowwise": RowwiseParallel,
        "colwise_rep": lambda: ColwiseParallel(output_layouts=Replicate()),
        "colwise_gather_output": lambda: ColwiseParallel(output_layouts=Replicate()),
    }
    for name, kind in wanted.items():
        if kind not in kinds:
            raise HookloopError(
                f"parallel: the tp_plan of {type(model).__name__} wants '{kind}' for '{name}', "
                f"which is not one of {', '.join(kinds)}: write a plan of your own.",
                argument="parallel",
            )
    parallelize_module(model, mesh, {name: kinds[kind]() for name, kind in wanted.items()})


READY: dict[str, Callable[[nn.Module, DeviceMesh], object]] = {
    "transformer_encoder": split_transformer_encoder,
    "tp_plan": follow_tp_plan,
}
"""Plans that are there already, by name."""
