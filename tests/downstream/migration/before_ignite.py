# before_ignite.py
import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping
from ignite.metrics import Loss
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(64, 4)
data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

trainer = create_supervised_trainer(model, optimizer, mse_loss)
evaluator = create_supervised_evaluator(model, {"loss": Loss(mse_loss)})


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(DataLoader(data, batch_size=32))


def score(engine):
    return -engine.state.metrics["loss"]


evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(3, score, trainer))
state = {"model": model, "optimizer": optimizer, "trainer": trainer}
disk = DiskSaver("out", require_empty=False)
evaluator.add_event_handler(Events.COMPLETED, Checkpoint(state, disk, score_function=score))

trainer.run(DataLoader(data, batch_size=16), max_epochs=5)
print(f"val loss {evaluator.state.metrics['loss']:.4f}")
