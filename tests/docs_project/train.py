"""A script of a project that was written for MMEngine."""

import argparse

import torch
from mmengine.hooks import Hook

from hookloop import Trainer


class Note(Hook):
    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        print("iteration", runner.iter)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--work-dir")
    model = torch.nn.Linear(4, 1)
    Trainer(
        model,
        train_data=[(torch.ones(8, 4), torch.zeros(8, 1))] * 4,
        loss=torch.nn.functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        hooks=[Note()],
        run_dir=parser.parse_args().work_dir,
    ).train()
