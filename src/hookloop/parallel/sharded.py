"""A sharded model: each rank has a part of each parameter; torch's `fully_shard` does the work.

A forward gathers the parameters that it needs, block by block, and a backward leaves each rank its
part of the averaged gradients. As for replicas, what torch wraps is not the model but a carrier,
whose forward runs everything that an update computes: a step may call any method of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from hookloop.errors import HookloopError, ModelError
from hookloop.parallel.plans import find_plan
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.replicated import SLOTS
from hookloop.parallel.settings import Parallel, Plan

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import FSDPModule

UNSUPPORTED = {
    "Muon": "it needs whole matrices",
    "Adafactor": "it changes how its state is laid out",
    "LBFGS": "it makes one vector of all parameters",
    "SparseAdam": "sparse gradients cannot be sharded",
}
"""Optimizers of torch that cannot step a part of a parameter, and why."""


class Shards:
    """A model whose parameters are spread over all ranks.

    Args:
        model: The user's model; it is changed in place.
        optimizers: They get the new parameters in place of the old ones.
        ranks: The connection to the other ranks.
        settings: What to shard, and how.
        device: Where the model is.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizers: Mapping[str, Optimizer],
        ranks: Ranks,
        settings: Parallel,
        device: torch.device,
    ) -> None:
        from torch.distributed.fsdp import fully_shard

        check_shardable(model, optimizers, settings, ranks.world.size)
        before = dict(model.named_parameters(remove_duplicate=False))
        mesh = make_mesh(settings, ranks.world.size, device)
        if settings.plan is not None:
            _split(model, settings.plan, mesh)
            mesh = mesh["data"]
        options = {"mesh": mesh, **_policies(settings)}
        carrier, blocks = _Carrier(model), blocks_of(model, settings.shard)
        if settings.activation_checkpointing:
            checkpoint_activations(model, blocks)
        for block in blocks:
            fully_shard(block, **options)
        # Kept until the backward: it would be gathered again at once.
        self._carrier: FSDPModule = fully_shard(carrier, reshard_after_forward=False, **options)
        after = dict(model.named_parameters(remove_duplicate=False))
        _replace_parameters(optimizers, {id(before[name]): after[name] for name in before})
        self._ranks, self._device = ranks, device
        self._has_split = settings.plan is not None
        if self._has_split:
            _step_one_by_one(optimizers)

    def forward(self, compute: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is computed
        """Compute something with the whole model; all ranks have to do so at the same time."""
        result = cast("torch.nn.Module", self._carrier)(compute)
        if not torch.is_grad_enabled():  # There is no backward, which would let go of the model.
            self._carrier.reshard()
        return result

    def clip(self, parameters: Sequence[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Clip the gradients of all ranks together; return their norm, the same on each."""
        if not self._has_split:
            norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
            return local_part(norm)
        # Parameters that are split lie on another mesh than the rest, and torch mixes no meshes.
        gradients = [one.grad for one in parameters if one.grad is not None]
        total = self._norm(gradients, norm_type)
        factor = torch.clamp(max_norm / (total + 1e-6), max=1.0)
        for gradient in gradients:
            local_part(gradient).mul_(factor)
        return total

    def _norm(self, gradients: Sequence[Tensor], norm_type: float) -> Tensor:
        """Return the norm of gradients of which each rank has parts, some of them as copies."""
        size = self._ranks.world.size
        parts = [(local_part(one), copies_of(one, size)) for one in gradients]
        zero = torch.zeros((), device=self._device)
        norms = [
            (torch.linalg.vector_norm(part, norm_type).to(zero), copies)
            for part, copies in parts
            if part.numel()
        ]
        if norm_type == float("inf"):
            own = torch.stack([zero, *(norm for norm, _ in norms)]).max()
            return self._ranks.reduce(own, "max")
        powers = [norm**norm_type / copies for norm, copies in norms]
        own = torch.stack([zero, *powers]).sum()
        return self._ranks.reduce(own, "sum") ** (1 / norm_type)

    def start(self, *, synchronizes: bool) -> None:
        """Begin a microbatch; gradients are averaged in the backward of the last one only."""
        self._carrier.set_requires_gradient_sync(synchronizes)


def local_part(value: Tensor) -> Tensor:
    """Return what this rank has of a tensor."""
    return cast("Tensor", value.to_local()) if hasattr(value, "to_local") else value


def copies_of(value: Tensor, size: int) -> int:
    """Return how many of all ranks have the same part of a tensor.

    Args:
        value: The tensor; of one that is not cut, each rank has a copy.
        size: The number of all ranks.
    """
    cut = cast("Any", value)
    places = enumerate(getattr(value, "placements", ()))
    return size // math.prod(int(cut.device_mesh.size(at)) for at, one in places if is_cut(one))


def is_cut(placement: object) -> bool:
    """Return whether a placement of torch's cuts a tensor along a dimension."""
    return hasattr(placement, "dim")


class ShardedAverager:
    """Averages the gradients of one update over the ranks of a sharded model.

    Args:
        shards: The model.
        ranks: The connection to the other ranks.
        parameters: Returns those that the update's optimizers step; there may be others later.
    """

    has_parts = True
    """A rank has a part of each gradient; numbers travel by themselves."""

    def __init__(
        self, shards: Shards, ranks: Ranks, parameters: Callable[[], Sequence[Tensor]]
    ) -> None:
        self._parameters, self._count = parameters, len(parameters())
        self._shards = shards
        self._ranks = ranks
        self.start = shards.start
        self._sum = torch.zeros(SLOTS)

    def clear(self) -> None:
        """Drop the numbers of the last update."""
        self._sum = torch.zeros(SLOTS)

    def forward(self, compute: Callable[[Any], Tensor | None], run: object) -> Tensor | None:
        """Compute a loss; `backward` averages its gradients."""
        return cast("Tensor | None", self._shards.forward(lambda: compute(run)))

    def backward(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> None:
        """Add the gradients of a loss, and numbers of this rank, both times a factor."""
        weighted = self.averaged_loss(loss, factor, numbers)
        if weighted is not None:
            weighted.backward()  # type: ignore[no-untyped-call]

    def averaged_loss(
        self, loss: Tensor | None, factor: Tensor | float, numbers: Sequence[Tensor]
    ) -> Tensor | None:
        """Note the numbers of this rank, and return the loss times the factor."""
        if numbers:
            self._sum[: len(numbers)] += torch.stack(tuple(numbers)).cpu() * float(factor)
        return None if loss is None else loss * factor

    @property
    def mean_numbers(self) -> Tensor:
        """The mean of the numbers over all ranks."""
        return self._ranks.reduce(self._sum, "mean")

    def check_complete(self) -> None:
        """Reject parameters that are new and not sharded: nobody would average them.

        torch averages a shard without a gradient as zero.
        """
        trained = self._parameters()
        if len(trained) == self._count:
            return
        self._count = len(trained)
        if not all(hasattr(one, "to_local") for one in trained):
            raise ModelError(
                "An optimizer got a parameter in the middle of the training that is not part of "
                "the sharded model, so that the ranks would not average its gradient: give the "
                "model all of its parameters before the training.",
                argument="optimizer",
            )

    def agree_on_skip(self, is_skipped: bool, iteration: int) -> None:
        """Reject an update that some ranks skip: the others would wait for their parameters."""
        skipped = self._ranks.gather(is_skipped)
        if any(skipped) and not all(skipped):
            ranks = [rank for rank, is_one in enumerate(skipped) if is_one]
            raise ModelError(
                f"In iteration {iteration + 1} the step returned no loss on the ranks {ranks} "
                "only: a sharded model needs all ranks in each update. Return a loss of weight 0 "
                "there: {'loss': output.sum() * 0, 'weight': 0}."
            )


class _Carrier(torch.nn.Module):
    """What torch wraps: it holds the model, and runs whatever is to be computed."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is computed
        return compute()


def check_shardable(
    model: torch.nn.Module, optimizers: Mapping[str, Optimizer], settings: Parallel, size: int
) -> None:
    """Reject what cannot be sharded over so many ranks."""
    check_optimizers(optimizers)
    if has_sparse_gradients(model):
        raise ModelError(
            "The model has an embedding with sparse=True, whose gradients cannot be sharded: "
            "leave sparse out, or write parallel='replicated'.",
            argument="model",
        )
    outer, inner = _sizes(settings, size).values()
    if outer * inner != size:
        raise HookloopError(
            f"parallel: mesh has {outer} x {inner} = {outer * inner} ranks, but there are {size}.",
            argument="parallel",
        )
    if settings.plan is not None:
        find_plan(settings.plan)
    blocks_of(model, settings.shard)


def has_sparse_gradients(model: torch.nn.Module) -> bool:
    """Return whether an embedding of the model has sparse gradients."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return any(isinstance(one, kinds) and one.sparse for one in model.modules())


def check_optimizers(optimizers: Mapping[str, Optimizer]) -> None:
    """Reject optimizers that cannot step shards, or that have stepped the whole model already."""
    for name, optimizer in optimizers.items():
        kind = type(optimizer).__name__
        if kind in UNSUPPORTED:
            raise ModelError(
                f"The optimizer '{name}' is {kind}, which cannot step a sharded model: "
                f"{UNSUPPORTED[kind]}. Use AdamW, Adam or SGD, or parallel='replicated'.",
                argument="optimizer",
            )
        if kind == "SGD" and any(group.get("fused") for group in optimizer.param_groups):
            raise ModelError(
                f"The optimizer '{name}' is SGD with fused=True, which cannot step a sharded "
                "model: leave fused out.",
                argument="optimizer",
            )
        if optimizer.state:
            raise ModelError(
                f"The optimizer '{name}' has stepped already, so its parameters cannot be sharded "
                "any more: give one that is new.",
                argument="optimizer",
            )


def make_mesh(settings: Parallel, size: int, device: torch.device) -> DeviceMesh:
    """Arrange the ranks: all in one row, or in groups that have copies of each other's shards."""
    from torch.distributed.device_mesh import init_device_mesh

    sizes = _sizes(settings, size)
    if sizes.get("replicate") == 1:
        sizes = {"shard": sizes["shard"]}
    return init_device_mesh(device.type, tuple(sizes.values()), mesh_dim_names=tuple(sizes))


def _sizes(settings: Parallel, size: int) -> Mapping[str, int]:
    return settings.mesh or {"replicate": 1, "shard": size}


def _split(model: torch.nn.Module, plan: Plan, mesh: DeviceMesh) -> None:
    """Split layers over the ranks of a mesh, as a plan says."""
    find_plan(plan)(model, mesh["tensor"])
    ranks = mesh["tensor"].size()
    for name, parameter in model.named_parameters():
        for placement in getattr(parameter, "placements", ()):
            dimension = getattr(placement, "dim", None)
            if dimension is not None and parameter.shape[dimension] % ranks:
                raise ModelError(
                    f"The plan {plan!r} splits '{name}' of shape {tuple(parameter.shape)} over "
                    f"{ranks} ranks, which do not divide {parameter.shape[dimension]}: torch "
                    "splits layers evenly.",
                    argument="parallel",
                )
    if not any(hasattr(one, "to_local") for one in model.parameters()):
        raise ModelError(
            f"The plan {plan!r} has split no parameter of {type(model).__name__}: it has to call "
            "torch's parallelize_module with the names of its layers.",
            argument="parallel",
        )


def _step_one_by_one(optimizers: Mapping[str, Optimizer]) -> None:
    """Let optimizers step each parameter by itself: torch mixes no meshes in one operation."""
    for optimizer in optimizers.values():
        for group in optimizer.param_groups:
            for way in ("foreach", "fused"):
                if way in group:
                    group[way] = False


def blocks_of(model: torch.nn.Module, wanted: Sequence[str]) -> list[torch.nn.Module]:
    """Return the modules that are gathered one at a time, inner ones first.

    By default these are the entries of each ModuleList, which most models keep their layers in.

    Args:
        model: The model.
        wanted: Class names to look for instead, with or without their module.
    """
    if wanted:
        found = [one for one in model.modules() if _is_named(type(one), wanted)]
        missing = [name for name in wanted if not any(_is_named(type(m), [name]) for m in found)]
        if missing:
            kinds = sorted({type(one).__name__ for one in model.modules()})
            raise HookloopError(
                f"parallel: the model has no module of the class {missing[0]}, to be sharded by "
                f"itself. It has: {', '.join(kinds)}.",
                argument="parallel",
            )
    else:
        lists = [one for one in model.modules() if isinstance(one, torch.nn.ModuleList)]
        found = [entry for one in lists for entry in one]
    order = list(model.modules())
    # Once each, and not the model itself: its carrier is the outermost.
    unique = {id(one): one for one in found if one is not model and list(one.parameters())}
    return sorted(unique.values(), key=lambda one: -_position(order, one))


def _position(order: Sequence[torch.nn.Module], module: torch.nn.Module) -> int:
    return next(number for number, one in enumerate(order) if one is module)


def _is_named(kind: type, names: Sequence[str]) -> bool:
    full = f"{kind.__module__}.{kind.__qualname__}"
    return any(name in (kind.__name__, full) for name in names)


def _policies(settings: Parallel) -> dict[str, Any]:
    """Return how parameters are gathered and gradients reduced."""
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy

    options: dict[str, Any] = {}
    if settings.precision:
        kinds = {name: _DTYPES[kind] for name, kind in settings.precision.items()}
        options["mp_policy"] = MixedPrecisionPolicy(
            param_dtype=kinds.get("param"), reduce_dtype=kinds.get("reduce")
        )
    if settings.offload:
        # Pinned memory needs an accelerator.
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=torch.cuda.is_available())
    return options


_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def _replace_parameters(optimizers: Mapping[str, Optimizer], new: Mapping[int, Tensor]) -> None:
    """Give optimizers the shards in place of the parameters that they were built from."""
    for name, optimizer in optimizers.items():
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in new:
                    raise ModelError(
                        f"The optimizer '{name}' has a parameter that is not in the model, which "
                        "a sharded run cannot average: make it a part of the model.",
                        argument="optimizer",
                    )
            group["params"] = [new[id(parameter)] for parameter in group["params"]]


def checkpoint_activations(model: torch.nn.Module, blocks: Sequence[torch.nn.Module]) -> None:
    """Compute the activations of blocks again in the backward, instead of keeping them."""
    from torch.distributed._composable.checkpoint_activation import checkpoint

    for block in blocks or [model]:
        # torch rejects a second time, which a second Trainer of the same model would be.
        if checkpoint.state(block) is not None:
            continue
        if any(True for _ in block.buffers()):
            checkpoint(block, context_fn=lambda block=block: (nullcontext(), _sparing(block)))
        else:  # A compiler understands this form only.
            checkpoint(block)


@contextmanager
def _sparing(block: torch.nn.Module) -> Iterator[None]:
    """Put back the buffers of a block: batch norm would count a batch twice."""
    kept = [(module, dict(module._buffers)) for module in block.modules() if module._buffers]
    for module, buffers in kept:
        copies = {name: one if one is None else one.clone() for name, one in buffers.items()}
        module._buffers.update(copies)
    try:
        yield
    finally:
        for module, buffers in kept:
            module._buffers.update(buffers)
