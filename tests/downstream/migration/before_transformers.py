# before_transformers.py
import torch
from torch.nn.functional import mse_loss
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

torch.manual_seed(0)
inputs = torch.randn(64, 4)
data = [{"x": x, "labels": x.sum(0, keepdim=True)} for x in inputs]


class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        output = self.layer(x)
        return {"loss": mse_loss(output, labels), "logits": output}


model = Regression()
args = TrainingArguments(
    output_dir="out",
    num_train_epochs=20,
    per_device_train_batch_size=64,
    per_device_eval_batch_size=64,
    learning_rate=0.1,
    optim="sgd",
    lr_scheduler_type="constant",
    max_grad_norm=1.0,
    eval_strategy="epoch",
    save_strategy="epoch",
    save_total_limit=2,
    load_best_model_at_end=True,
    metric_for_best_model="loss",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(
    model,
    args,
    train_dataset=data,
    eval_dataset=data,
    callbacks=[EarlyStoppingCallback(early_stopping_patience=3)],
)
trainer.train()
print(f"val loss {trainer.evaluate()['eval_loss']:.4f}")
