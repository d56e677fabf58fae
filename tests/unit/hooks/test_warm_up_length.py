import pytest
import torch
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop.hooks import WarmUpLength


class Score(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(5, 5)

    def forward(self, ids):
        return self.embed(ids)


def train(tmp_path, batch, hook):
    model, noted = Score(), []

    def step(run, batch):
        noted.append((run.phase, batch))
        parts = list(batch.values()) if isinstance(batch, dict) else batch
        ids = parts if isinstance(parts, torch.Tensor) else parts[0]
        return run.model(ids).square().mean()

    trainer = make_trainer(
        model=model,
        train_data=[batch] * 6,
        val_data=[batch],
        step=step,
        loss=None,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        hooks=[hook],
        run_dir=tmp_path,
    )
    trainer.train()
    return noted


def test_sequences_grow_with_all_that_belongs_to_their_positions(tmp_path):
    batch = {
        "ids": torch.zeros(2, 20, dtype=torch.long),
        "mask": torch.ones(2, 20, 3),
        "label": torch.zeros(2),
        "box": torch.ones(2, 4),
    }
    noted = train(tmp_path, batch, WarmUpLength(4, start=4, multiple=4))
    lengths = [one["ids"].shape[1] for phase, one in noted if phase == "train"]
    assert lengths == [4, 8, 12, 16, 20, 20]
    for _, one in noted:
        assert one["mask"].shape == (2, one["ids"].shape[1], 3)
        assert one["label"].shape == (2,) and one["box"].shape == (2, 4)
    assert noted[-1][0] == "val" and noted[-1][1]["ids"].shape == (2, 20)
    assert batch["ids"].shape == (2, 20)


@pytest.mark.parametrize("kind", [tuple, list, "tensor"])
def test_other_kinds_of_batches(tmp_path, kind):
    ids = torch.zeros(2, 20, dtype=torch.long)
    batch = ids if kind == "tensor" else kind([ids, ids])
    first = train(tmp_path, batch, WarmUpLength(4, start=6, multiple=1))[0][1]
    parts = [first] if kind == "tensor" else first
    assert all(part.shape == (2, 6) for part in parts)


def test_what_cannot_be_cut_is_rejected(tmp_path):
    with pytest.raises(HookError, match="WarmUpLength"):
        train(tmp_path, (torch.zeros(3, dtype=torch.long),), WarmUpLength(4))
    for named in ({"start": 0}, {"multiple": 0}):
        with pytest.raises(HookError, match="must be at least 1"):
            WarmUpLength(4, **named)
