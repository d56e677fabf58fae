"""Ranks for tests of sharded checkpoints: processes that form a gloo group."""

from __future__ import annotations

import multiprocessing
import os
import sys
import textwrap
import traceback
from multiprocessing.process import BaseProcess
from pathlib import Path

SECONDS = 100

PREAMBLE = """
import os, sys, json, threading
from pathlib import Path
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


class Net(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.first = nn.Linear(3, width)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, 2)
        self.third = nn.Linear(width, 2)
        self.third.weight = self.second.weight  # Tied.
        self.low = nn.Linear(7, 1).bfloat16().requires_grad_(False)

    def forward(self, x):
        hidden = self.norm(self.first(x)).relu()
        return self.second(hidden) + self.third(hidden)


def build(steps=0, seed=0, shard=True, width=5):
    torch.manual_seed(seed)
    model = Net(width)
    if shard:
        fully_shard(model.low)  # Its parameters are of another type than the rest.
        fully_shard(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [{"params": trained[:1], "lr": 0.1}, {"params": trained[1:]}], lr=0.01
    )
    for step in range(steps):
        torch.manual_seed(step)
        model(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def full(value):
    return value.full_tensor() if hasattr(value, "full_tensor") else value
"""

_context = multiprocessing.get_context("forkserver")
# What takes seconds to import is imported once, in the process from which all ranks are forked.
_context.set_forkserver_preload(
    [
        "torch.distributed.fsdp",
        "torch.distributed.checkpoint",
        "pytest",
        "torch._dynamo",
        "torch.distributed.checkpoint.default_planner",
        "hookloop.checkpoint.shards.reading",
    ]
)


def names_of_code(home: Path, rank: int = 0, size: int = 1) -> dict[str, object]:
    """Return what the code of a rank finds defined; in the test's own process as well."""
    names: dict[str, object] = {"rank": rank, "size": size, "home": home}
    exec(PREAMBLE, names)
    return names


def _be_rank(rank: int, size: int, home: Path, meeting: Path, body: str) -> None:
    output = (home / f"{meeting.name}-{rank}").open("w", buffering=1)
    sys.stdout = sys.stderr = output
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
        exec(body, {**names_of_code(home, rank, size), "group": dist.new_group()})
        dist.destroy_process_group()
    except BaseException:  # noqa: BLE001 - printed, and the process ends
        traceback.print_exc()
        output.flush()
        os._exit(1)


def start_ranks(home: Path, size: int, body: str) -> tuple[list[BaseProcess], list[Path]]:
    """Start a process for each rank; return them, and where each prints."""
    meeting = home / f"meeting{len(list(home.glob('meeting*-0')))}"
    body = textwrap.dedent(body)
    processes: list[BaseProcess] = []
    for rank in range(size):
        arguments = (rank, size, home, meeting, body)
        processes.append(_context.Process(target=_be_rank, args=arguments, daemon=True))
        processes[-1].start()
    return processes, [home / f"{meeting.name}-{rank}" for rank in range(size)]


def run_ranks(home: Path, size: int, body: str) -> list[str]:
    """Run a text of code on so many ranks; return what each printed."""
    processes, files = start_ranks(home, size, body)
    for process in processes:
        process.join(SECONDS)
    stuck = [rank for rank, process in enumerate(processes) if process.is_alive()]
    for process in processes:
        process.kill()
    outputs = [path.read_text() if path.exists() else "" for path in files]
    assert not stuck, f"ranks {stuck} of {size} hang:\n{''.join(outputs)}"
    for rank, (process, output) in enumerate(zip(processes, outputs, strict=True)):
        assert process.exitcode == 0, f"rank {rank} of {size}:\n{output}"
    return outputs


SAVE = """
from hookloop.checkpoint.state.optimizers import optimizer_state
from hookloop.checkpoint.shards.writing import stage, write
from hookloop.checkpoint.saving.snapshot import Snapshot


def state_of(model, optimizer, iteration=3):
    return {
        "model": model.state_dict(),
        "optimizers": {"main": optimizer_state(model, optimizer)},
        "progress": {"iter": iteration},
        "averaged": {name: value * 2 for name, value in model.state_dict().items()},
        "rng": [[rank_of_file, torch.tensor([rank_of_file])] for rank_of_file in range(size)],
    }


def save(model, optimizer, directory, iteration=3, **options):
    taken = Snapshot().take(state_of(model, optimizer, iteration))
    return write(stage(taken, group, {"strategy": "sharded"}), Path(directory), **options)
"""


def save_trained(home: Path, size: int, name: str = "iter_3", steps: int = 3) -> Path:
    """Save a model after some steps on so many ranks, and what it holds as one file."""
    run_ranks(
        home,
        size,
        SAVE
        + f"""
model, optimizer = build(steps={steps})
written = save(model, optimizer, home / "{name}", {steps})
assert (written is None) == (rank > 0)
whole = {{n: full(v) for n, v in model.state_dict().items()}}
state = optimizer_state(model, optimizer)
for one in state["state"].values():
    one.update({{k: full(v) for k, v in one.items()}})
if rank == 0:
    torch.save({{"model": whole, "main": state}}, home / "{name}.whole")
""",
    )
    return home / name
