# %% [markdown]
# # Two minutes with hookloop
#
# Train a small network, kill the kernel in the middle, run everything again, and see that not one
# bit is lost. Then go back to an iteration that is long over, and ask which sample its loss came
# from.
#
# Nothing below is prepared for the kill: checkpoints, the record of the run and a clean resume
# are what every run has. As a script: `python two_minutes.py`, twice.

# %%
import os
import signal
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookloop import Hook, Run, Trainer, blame, replay, samples
from hookloop.hooks import RecordNorms
from hookloop.testing import assert_same_bits


class Rings(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Two noisy rings. Every sample is moved a little, differently in each epoch."""

    def __init__(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        angle = torch.rand(count, generator=generator) * 6.2832
        self.labels = torch.arange(count) % 2
        radius = 1.0 + self.labels + 0.1 * torch.randn(count, generator=generator)
        self.points = torch.stack([angle.cos() * radius, angle.sin() * radius], dim=1)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.points[index] + 0.05 * torch.randn(2), self.labels[index]

    def id(self, index: int) -> str:
        return f"ring-{index}"


# %% [markdown]
# One sample has the wrong label. We will look for it later.

# %%
WRONG = 137


def make(directory: str | Path) -> dict[str, Any]:
    """Return the arguments of a Trainer: the same ones for every run of this notebook."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 2))
    data = Rings(1024, seed=1)
    data.labels[WRONG] = 1 - data.labels[WRONG]
    return {
        "model": model,
        "train_data": DataLoader(data, batch_size=32, shuffle=True, num_workers=0),
        "val_data": DataLoader(Rings(256, seed=2), batch_size=64),
        "loss": nn.functional.cross_entropy,
        "optimizer": torch.optim.Adam(model.parameters(), lr=3e-3),
        "max_epochs": 12,
        "seed": 1,
        "run_dir": directory,
        "resume": "auto",
    }


# %% [markdown]
# ## A run that nothing disturbs

# %%
whole = Trainer(**make("runs/whole"))
print(whole.train())

# %% [markdown]
# ## A run that is killed
#
# A hook sends SIGKILL to its own process after iteration 200: no handler runs, nothing is cleaned
# up. **The kernel dies here.** Start it again and run all cells: this one continues the run.


# %%
class KillOnce(Hook):
    """Kill the process after an iteration."""

    def after_train_iter(self, run: Run) -> None:
        if run.progress.iter == 200:
            os.kill(os.getpid(), signal.SIGKILL)


is_first = not Path("runs/killed").exists()
killed = Trainer(**make("runs/killed"), hooks=[KillOnce()] if is_first else [])
print(killed.train())
print("continued from", killed.resumed_from)

# %% [markdown]
# ## The same bits
#
# Dropout, shuffling and the noise on every sample included.


# %%
def end_of(name: str) -> nn.Module:
    """Return the weights at the end of a run."""
    trainer = Trainer(**make(f"runs/{name}"))
    trainer.train()  # It is complete, so this only loads its end.
    return trainer.run.model


assert_same_bits(end_of("whole"), end_of("killed"))
print("Not one bit differs.")

# %% [markdown]
# ## An iteration long past
#
# Nothing was switched on beforehand. The run is repeated from the nearest checkpoint, compared
# with what it recorded then, and looked at with a hook that it did not have.

# %%
found = replay("runs/killed", at=370, make=make, hooks=[RecordNorms(every=1)])
print("from", found.origin, "- equal" if found.difference is None else found.difference)
print("recorded afterwards:", ", ".join(found.recorded))

# %% [markdown]
# ## Which sample did it?
#
# First the iteration of the last epoch in which the wrong label was read: `samples` walks the
# order of the data again, without training. Then `blame` repeats that iteration and ranks what
# was in it.

# %%
last_epoch = samples("runs/killed", at=(353, 384), make=make)
read_at = next(one.iter for one in last_epoch.samples if one.index == WRONG)
print(f"ring-{WRONG} was read in iteration {read_at}.")

worst = blame("runs/killed", at=read_at, make=make).samples[0]
print(
    f"The worst sample of iteration {read_at} is {worst.id}: alone its loss is {worst.alone:.2f}."
)
assert worst.index == WRONG

# %% [markdown]
# The same from a shell, for a run with a config: `hookloop replay`, `samples` and `blame`.
