import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import make_data, make_trainer

from hookloop import Trainer
from hookloop.hooks import SyncBuffers


@pytest.mark.slow
def test_ranks_get_the_mean_of_their_buffers():
    def work():
        model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2))
        data = [(torch.randn(6, 4), torch.randn(6, 2))]
        trainer = Trainer(
            model,
            train_data=data,
            val_data=data,
            loss=torch.nn.functional.mse_loss,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
            max_epochs=1,
            default_hooks=False,
            hooks=[SyncBuffers()],
        )

        @trainer.on("after_train_epoch", priority=0)
        def spread(run):
            model[1].running_mean.fill_(float(run.world.rank))
            model[1].num_batches_tracked.fill_(7)

        trainer.train()
        return model[1].running_mean.tolist(), model[1].num_batches_tracked.item()

    assert on_ranks(work, 3) == [([1.0, 1.0], 7)] * 3


def test_one_process_is_left_alone(tmp_path):
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)
    )
    trainer = make_trainer(
        model=model, hooks=[SyncBuffers()], val_data=make_data(4), run_dir=tmp_path
    )
    assert trainer.train().status == "completed"
