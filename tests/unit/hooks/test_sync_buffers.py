import subprocess
import sys
import textwrap

import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop.hooks import SyncBuffers

RANK = """
import sys
import torch, torch.distributed
from hookloop.parallel.world import World
from hookloop.hooks import SyncBuffers
from hookloop import Trainer

rank, rendezvous = int(sys.argv[1]), f"file://{sys.argv[2]}"
torch.distributed.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=2)
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
data = [(torch.randn(4, 2), torch.randn(4, 2))]
trainer = Trainer(model, train_data=data, val_data=data, loss=torch.nn.functional.mse_loss,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.0), max_epochs=1, default_hooks=False,
    hooks=[SyncBuffers()], run_dir=sys.argv[3])
trainer.run.world = World(rank, 2)

@trainer.on("after_train_epoch", priority=0)
def spread(run):
    model[1].running_mean.fill_(float(rank))
    model[1].num_batches_tracked.fill_(7)

trainer.train()
print(model[1].running_mean.tolist(), model[1].num_batches_tracked.item())
"""


@pytest.mark.slow
def test_ranks_get_the_mean_of_their_buffers(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(RANK)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store"), str(tmp_path / f"run{rank}")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [rank.communicate(timeout=120)[0].strip() for rank in ranks]
    assert outputs == ["[0.5, 0.5] 7"] * 2


def test_one_process_is_left_alone(tmp_path):
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)
    )
    trainer = make_trainer(
        model=model, hooks=[SyncBuffers()], val_data=make_data(4), run_dir=tmp_path
    )
    assert trainer.train().status == "completed"
