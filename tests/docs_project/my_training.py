"""The script of docs/ranks.md."""

import torch
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Trainer

if __name__ == "__main__":
    torch.manual_seed(0)
    inputs = torch.randn(203, 4)
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    model = torch.nn.Linear(4, 1)
    trainer = Trainer(
        model,
        train_data=DataLoader(data, batch_size=20, shuffle=True),
        val_data=DataLoader(data, batch_size=20),
        loss=torch.nn.functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=3,
        seed=0,
    )
    trainer.train()
