"""Models whose layers are split over ranks: a mesh of `data` and `tensor`, and a plan."""

import json
import shutil
from typing import ClassVar

import pytest
import torch
from tests.integration.many_ranks import KillAt, global_batches, is_equal, train
from tests.ranks import each_rank, on_ranks
from torch import nn

from hookloop.errors import HookloopError, ModelError
from hookloop.hooks import AverageWeights, ClipGradients, RecordNorms

pytestmark = pytest.mark.slow

KINDS = ("grad", "weight", "update")


class Wide(nn.Module):
    """A part that is split, and one that is not."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(4, 8)
        self.up = nn.Linear(8, 32)
        self.down = nn.Linear(32, 8)
        self.leave = nn.Linear(8, 1)

    def forward(self, inputs):
        hidden = torch.tanh(self.enter(inputs))
        return self.leave(hidden + self.down(torch.relu(self.up(hidden))))


class Sequences(nn.Module):
    """A transformer of torch's own on four numbers as a sequence."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.enter, self.leave = nn.Linear(1, 8), nn.Linear(8, 1)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, inputs):
        return self.leave(self.encoder(self.enter(inputs.unsqueeze(-1))).mean(1))


class Planned(Wide):
    """A model that says how it is split, as those of transformers do."""

    tp_plan: ClassVar = {"up": "colwise", "down": "rowwise"}


def split(model, mesh):
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    parallelize_module(model, mesh, plan)


def settings(data=2, tensor=2, plan=split):
    return {"mesh": {"data": data, "tensor": tensor}, "plan": plan}


def closest(one, other):
    # The bias of a key changes no attention: its gradient is noise, which Adam makes large.
    names = [name for name in one["weights"] if not name.endswith("in_proj_bias")]
    pairs = [(one["weights"][name], other["weights"][name]) for name in names]
    return max(float((a - b).abs().max()) for a, b in pairs)


@pytest.mark.parametrize(
    ("model", "plan", "data", "tensor"),
    [
        (Wide, split, 2, 2),
        (Wide, split, 1, 4),
        (Planned, "tp_plan", 1, 2),
        (Sequences, "transformer_encoder", 2, 2),
    ],
)
def test_a_split_model_computes_what_one_process_computes(tmp_path, model, plan, data, tensor):
    size = data * tensor
    options = {"model": model, "clip_norm": 0.5, "accumulate": 2, "max_epochs": 1}
    results = on_ranks(
        lambda: train(tmp_path / "split", parallel=settings(data, tensor, plan), **options), size
    )
    alone = train(tmp_path / "alone", **options)
    assert all(is_equal(one, results[0]) for one in results)
    assert closest(results[0], alone) < 1e-6
    assert results[0]["metrics"] == pytest.approx(alone["metrics"], rel=1e-4)
    # Ranks that split a layer see the same samples.
    assert all(results[n]["seen"] == results[n - n % tensor]["seen"] for n in range(size))
    assert global_batches(results[::tensor]) == alone["seen"]


def test_a_killed_run_continues_to_the_same_bits_and_on_other_meshes(tmp_path):
    options = {"model": Wide, "hooks": [AverageWeights()], "max_epochs": 1}
    parallel = settings()
    whole = on_ranks(lambda: train(tmp_path / "whole", parallel=parallel, **options), 4)

    def killed():
        kill = KillAt("after_train_iter", 8, [1])
        train(tmp_path / "run", parallel=parallel, **{**options, "hooks": [AverageWeights(), kill]})

    each_rank(killed, 4)
    for name, others in {
        "same": parallel,
        "rows": settings(4, 1),
        "sharded": "sharded",
        "columns": settings(1, 4),
    }.items():
        copy_run(tmp_path / "run", tmp_path / name)
        found = on_ranks(lambda p=others, n=name: train(tmp_path / n, parallel=p, **options), 4)
        assert found[0]["iter"] == whole[0]["iter"]
        if name == "same":
            assert is_equal(found[0], whole[0])
        assert closest(found[0], whole[0]) < 1e-5
    copy_run(tmp_path / "run", tmp_path / "one")
    assert closest(train(tmp_path / "one", **options), whole[0]) < 1e-5


def test_norms_count_each_part_once(tmp_path):
    def norms(folder, **changes):
        train(folder, model=Wide, max_epochs=1, hooks=[RecordNorms(of=KINDS)], **changes)
        return read_metrics(folder, "norms/")

    alone = norms(tmp_path / "alone")
    copies = {"strategy": "sharded", "mesh": {"replicate": 2, "shard": 2}}
    for name, parallel in {"split": settings(), "copies": copies}.items():
        on_ranks(lambda p=parallel, n=name: norms(tmp_path / n, parallel=p) and None, 4)
        assert read_metrics(tmp_path / name, "norms/") == pytest.approx(alone, rel=1e-3)


def read_metrics(folder, prefix):
    """Return the last value of each metric that a run has written."""
    found = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        found |= {n: v for n, v in json.loads(line).items() if n.startswith(prefix)}
    return found


def copy_run(source, target):
    shutil.copytree(source, target)
    for lock in target.glob("*lock*"):
        lock.unlink()


def test_clipping_sees_all_parts(tmp_path):
    options = {"model": Wide, "max_epochs": 1, "hooks": [ClipGradients(max_norm=0.1)]}
    results = on_ranks(lambda: train(tmp_path / "split", parallel=settings(), **options), 4)
    assert closest(results[0], train(tmp_path / "alone", **options)) < 1e-5


@pytest.mark.parametrize(
    ("parallel", "error", "message"),
    [
        (settings(2, 2, "no_such.plan"), HookloopError, "'no_such.plan' cannot be imported"),
        (settings(2, 2, "tp_plan"), HookloopError, "which Wide does not have"),
        (settings(1, 3), ModelError, "'up.weight' of shape .32, 8. over 3 ranks"),
        (settings(2, 2, lambda model, mesh: None), ModelError, "has split no parameter of Wide"),
        (settings(3, 2), HookloopError, "mesh has 3 x 2 = 6 ranks, but there are 4"),
        ({"mesh": {"data": 2, "tensor": 2}}, HookloopError, "plan says how layers are split"),
        ({"mesh": {"context": 4}}, HookloopError, "'context' would cut each sequence"),
        ({"mesh": {"pipeline": 4}}, HookloopError, "'pipeline' would give each rank"),
        ({**settings(), "logical": 4}, ModelError, "logical: 4"),
    ],
)
def test_what_cannot_work_is_rejected(tmp_path, parallel, error, message):
    def rejected():
        with pytest.raises(error, match=message):
            train(tmp_path, model=Wide, parallel=parallel)

    on_ranks(rejected, 3 if parallel == settings(1, 3) else 4)
