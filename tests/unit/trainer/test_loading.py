import pytest
import torch
from tests.tiny import make_data, make_model, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import CheckpointError
from hookloop.hooks import SaveCheckpoint


class Watch(Hook):
    def __init__(self):
        self.seen = []

    def after_load_checkpoint(self, run, checkpoint):
        # The entries are there, and nothing is restored.
        self.seen.append((checkpoint["progress"]["iter"], run.progress.iter))

    def before_train(self, run):
        self.seen.append(run.progress.iter)


def test_a_checkpoint_is_shown_to_hooks_before_it_is_restored(tmp_path):
    make_trainer(hooks=[SaveCheckpoint()], run_dir=tmp_path).train()
    watch = Watch()
    again = make_trainer(hooks=[SaveCheckpoint(), watch], run_dir=tmp_path, resume=True)
    again.train(max_epochs=2)
    assert watch.seen == [(3, 0), 3]
    assert again.run.progress.iter == 6


def test_weights_to_start_from_are_loaded_once(tmp_path):
    torch.save(make_model(seed=5).state_dict(), tmp_path / "start.pth")
    trainer = make_trainer(setup={"load_from": tmp_path / "start.pth"}, max_epochs=1)
    trainer.train()
    trained = trainer.run.model[0].weight.clone()
    trainer.train(max_epochs=2)  # Continues, and does not begin with those weights again.
    fresh = make_trainer(model=make_model(seed=5), max_epochs=2)
    fresh.train()
    assert not torch.equal(trained, trainer.run.model[0].weight)
    assert torch.equal(trainer.run.model[0].weight, fresh.run.model[0].weight)


def test_a_checkpoint_of_another_model_is_rejected(tmp_path):
    make_trainer(hooks=[SaveCheckpoint()], run_dir=tmp_path).train()
    other = torch.nn.Sequential(torch.nn.Linear(4, 1))
    trainer = make_trainer(
        model=other,
        optimizer=torch.optim.SGD(other.parameters(), lr=0.05),
        train_data=make_data(),
        run_dir=tmp_path,
        resume=True,
        hooks=[SaveCheckpoint()],
    )
    with pytest.raises(CheckpointError):
        trainer.train(max_epochs=2)
