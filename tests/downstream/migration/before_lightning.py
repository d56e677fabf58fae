# before_lightning.py
import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(64, 4)
data = TensorDataset(inputs, inputs.sum(1, keepdim=True))


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        loss = mse_loss(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", mse_loss(self.layer(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = pl.Trainer(
    max_epochs=5,
    accelerator="cpu",
    accumulate_grad_batches=2,
    gradient_clip_val=1.0,
    callbacks=[
        EarlyStopping("val_loss", patience=3),
        ModelCheckpoint("out", monitor="val_loss", save_last=True),
    ],
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
)
trainer.fit(Regression(), DataLoader(data, batch_size=8), DataLoader(data, batch_size=32))
print(f"val loss {trainer.callback_metrics['val_loss']:.4f}")
