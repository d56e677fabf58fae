import torch

from hookloop.cli.verify_hooks_process import describe, leave_out
from hookloop.testing import tiny_trainer


def make(tmp_path, without):
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    trainer = tiny_trainer(
        model=model,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.1),
        default_hooks={"console": None},
        run_dir=tmp_path / without,
    )
    assert without in [hook["name"] for hook in describe(trainer)]
    leave_out(trainer, without)
    trainer.train()
    assert without not in [hook["name"] for hook in describe(trainer)]
    return optimizer.param_groups[0]["lr"]


def test_a_run_without_the_hook_that_steps_the_schedule_trains_without_the_schedule(tmp_path):
    assert make(tmp_path, "timing") < 0.5
    assert make(tmp_path, "schedule") == 0.5
