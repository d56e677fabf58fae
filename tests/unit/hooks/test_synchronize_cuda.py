import torch
from tests.tiny import make_model, make_trainer

from hookloop.hooks import SynchronizeCuda


def test_on_a_cpu_modules_are_left_alone(tmp_path):
    model = make_model()
    trainer = make_trainer(model=model, hooks=[SynchronizeCuda()], run_dir=tmp_path)
    trainer.on("before_train")(lambda run: counts.append(len(run.model[0]._forward_hooks)))
    counts = []
    trainer.train()
    assert counts == [0]


def test_on_a_gpu_every_module_waits_and_is_released_at_the_end(tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(1))
    trainer, hook = make_trainer(run_dir=tmp_path), SynchronizeCuda()
    trainer.run.device = torch.device("cuda")
    hook.before_run(trainer.run)
    trainer.run.model(torch.zeros(1, 4))
    assert len(waits) == 4  # the model and its three modules
    hook.after_run(trainer.run)
    trainer.run.model(torch.zeros(1, 4))
    assert len(waits) == 4
