"""When a training has the same bits as a loop that is written by hand.

Both are trained for each row of the table in docs/migration/plain-loop.md, which has to show what
was found. `python tests/integration/test_hand_written_loops.py` prints the table.
"""

import random
import sys
import tempfile
from itertools import cycle
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookloop import Trainer

PAGE = Path(__file__).parents[2] / "docs" / "migration" / "plain-loop.md"
SEED, EPOCHS = 3, 2
INPUTS = torch.randn(24, 4, generator=torch.Generator().manual_seed(1))

# Whether the Trainer has seed=, and whether the loop seeds again after everything is built.
WAYS = {
    "no `seed=`; the loop seeds once": (None, False),
    "`seed=`; the loop seeds again before it begins": (SEED, True),
    "`seed=`; the loop seeds once": (SEED, False),
}


class Samples(Dataset):
    def __init__(self, count=24, *, draws=False):
        self.count, self.draws = count, draws

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        noise = torch.randn(4) if self.draws else 0.0
        return INPUTS[index] + noise, INPUTS[index].sum(0, keepdim=True)


def load(count=24, *, draws=False, **options):
    options = {"batch_size": 6, "shuffle": True, **options}
    return DataLoader(Samples(count, draws=draws), **options)


def with_generator():
    return load(generator=torch.Generator().manual_seed(5))


def two_streams():
    return {"a": load(24), "b": load(12)}


def zipped(streams):
    return zip(*streams.values(), strict=False)


def zipped_when_read(streams):
    """As `zip` does, but each loader begins only when its first batch is wanted."""
    return zip(*(begun_later(one) for one in streams.values()), strict=False)


def cycled(streams):
    return zip(begun_later(streams["a"]), begun_later(streams["b"], again=True), strict=False)


def begun_later(loader, *, again=False):
    for data in cycle([loader]) if again else [loader]:
        yield from data


# What the loop reads is the data itself, unless it mixes streams.
ROWS = {
    "shuffled data, dropout": {"data": load},
    "a `generator` of the loader's own": {"data": with_generator},
    "random augmentation": {"data": lambda: load(draws=True)},
    "the same in workers": {"data": lambda: load(draws=True, num_workers=2)},
    'the same in workers, `Data(seed_samples="workers")`': {
        "data": lambda: load(draws=True, num_workers=2),
        "options": {"data": {"seed_samples": "workers"}},
    },
    "a validation after each epoch": {"val": lambda: load(shuffle=False)},
    "the same, shuffled and with workers": {"val": lambda: load(num_workers=2)},
    "`accumulate=2`; the loop divides each loss by 2": {"accumulate": 2},
    "`clip_norm=`": {"clip_norm": 0.1},
    "the default hooks": {"options": {"default_hooks": None}},
    '`Data(mix="zip")`; the loop reads `zip(a, b)`': {
        "data": two_streams,
        "mix": "zip",
        "read": zipped,
    },
    '`Data(mix="zip")`; the loop reads `zip(begin(a), begin(b))`': {
        "data": two_streams,
        "mix": "zip",
        "read": zipped_when_read,
    },
    '`Data(mix="cycle")`; the loop reads `zip(begin(a), begin(again(b)))`': {
        "data": two_streams,
        "mix": "cycle",
        "read": cycled,
    },
}


def seed_all():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)


def build():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def loss_of(model, batch):
    """Return the loss of a batch, or the sum of the losses of one of each stream."""
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    if isinstance(batch[0], torch.Tensor):
        return nn.functional.mse_loss(model(batch[0]), batch[1])
    return loss_of(model, batch[0]) + loss_of(model, batch[1])


def by_hand(*, twice, data=load, val=None, read=iter, accumulate=1, clip_norm=None):
    seed_all()
    model, optimizer = build()
    data, val = data(), val() if val is not None else []
    if twice:
        seed_all()
    for _ in range(EPOCHS):
        model.train()
        for number, batch in enumerate(read(data), 1):
            loss = loss_of(model, batch)
            (loss / accumulate if accumulate > 1 else loss).backward()
            if number % accumulate == 0:
                if clip_norm is not None:
                    nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            for batch in val:
                loss_of(model, batch)
    return [parameter.tolist() for parameter in model.parameters()]


def by_trainer(*, seed, data=load, val=None, read=None, options=None, mix=None, **settings):
    seed_all()
    model, optimizer = build()
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            model,
            train_data=data(),
            val_data=val() if val is not None else None,
            step=lambda run, batch: loss_of(run.model, batch),
            optimizer=optimizer,
            max_epochs=EPOCHS,
            seed=seed,
            run_dir=Path(folder) / "run",
            **({"data": {"mix": mix}} if mix else {}),
            **settings,
            **{"default_hooks": False, **(options or {})},
        ).train()
    return [parameter.tolist() for parameter in model.parameters()]


def is_equal(row, seed, twice):
    given = {name: value for name, value in row.items() if name not in ("options", "mix")}
    return by_hand(twice=twice, **given) == by_trainer(seed=seed, **row)


def table():
    lines = [f"| training | {' | '.join(WAYS)} |", f"|---|{'---|' * len(WAYS)}"]
    for name, row in ROWS.items():
        found = [is_equal(row, *way) for way in WAYS.values()]
        lines.append(f"| {name} | {' | '.join('yes' if one else 'no' for one in found)} |")
    return "\n".join(lines)


def test_the_page_says_when_a_training_has_the_bits_of_a_loop():
    assert table() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
