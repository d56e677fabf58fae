"""Several training streams, cut off anywhere and resumed: the same bits as without a break."""

import pytest
import torch
from tests.tiny import assert_same_bits
from tests.unit.trainer.test_resume import Augmented, Cut, CutAt
from torch.utils.data import DataLoader

from hookloop import Hook, Trainer
from hookloop.hooks import SaveCheckpoint
from hookloop.trainer.settings import gathered


class NoteStreams(Hook):
    """Notes the stream of each microbatch."""

    def __init__(self):
        self.seen = []

    def after_loss(self, run):
        if run.phase == "train":
            self.seen.append(run.stream)
            if run.stream != "train":
                run.metrics.put(f"train/{run.stream}/loss", run.loss)


def loader(count, size, workers=0, **options):
    return DataLoader(
        Augmented(count), batch_size=size, shuffle=True, num_workers=workers, **options
    )


def step(run, batch):
    pairs = batch.values() if isinstance(batch, dict) else [batch]
    return sum(torch.nn.functional.mse_loss(run.model(x), y) for x, y in pairs)


def make(run_dir, mix, *, cut=None, resume=None, workers=0, data=None, hooks=(), **options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.4), torch.nn.Linear(8, 1))
    settings = {
        "train_data": data or {"a": loader(17, 3, workers), "b": loader(7, 2, workers)},
        "val_data": DataLoader(Augmented(6), batch_size=4, shuffle=True),
        "data.mix": mix,
        "step": step,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.01),
        "max_epochs": 3,
        "seed": 5,
    }
    every = SaveCheckpoint(every="1 iter", keep=None)
    return Trainer(
        model,
        hooks=[every, CutAt(cut), *hooks],
        default_hooks=False,
        run_dir=run_dir,
        resume=resume,
        **gathered(settings | options),
    )


def straight(tmp_path, mix, **options):
    trainer = make(tmp_path / "straight", mix, **options)
    trainer.train()
    return trainer


def cut_and_resumed(tmp_path, mix, *cuts, **options):
    run_dir = tmp_path / "cut"
    for count, cut in enumerate(cuts):
        with pytest.raises(Cut):
            make(run_dir, mix, cut=cut, resume=count > 0 or None, **options).train()
    trainer = make(run_dir, mix, resume=True, **options)
    trainer.train()
    return trainer


def assert_same_end(one, other):
    assert one.run.progress == other.run.progress
    assert_same_bits(one.run.model, other.run.model)
    assert one.run.metrics.state_dict() == other.run.metrics.state_dict()


SCHEDULED = {"a": {0: 3, "1 epoch": 1}, "b": {0: 1, 6: 2}}
MIXES = ["zip", "cycle", "in order", SCHEDULED]


CASES = [*((mix, 1) for mix in MIXES), ("in order", 3), (SCHEDULED, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(("mix", "accumulate"), CASES, ids=str)
def test_a_mixture_cut_off_anywhere_ends_the_same(tmp_path, mix, accumulate):
    whole = straight(tmp_path, mix, accumulate=accumulate)
    last = whole.run.progress.iter
    # Within an epoch, at its end, after it, and so on.
    cuts = sorted({last // 3 - 1, last // 3, last - 1})
    assert_same_end(cut_and_resumed(tmp_path, mix, *cuts, accumulate=accumulate), whole)


@pytest.mark.slow
@pytest.mark.parametrize(("mix", "persistent"), [("zip", True), ({"a": 1, "b": 1}, False)], ids=str)
def test_with_workers(tmp_path, mix, persistent):
    def data():
        return {
            "a": loader(17, 3, 1, persistent_workers=persistent),
            "b": loader(7, 2, 1, persistent_workers=persistent),
        }

    whole = straight(tmp_path, mix, data=data())
    run_dir = tmp_path / "cut"
    for count, cut in enumerate((2, 4, whole.run.progress.iter - 1)):
        with pytest.raises(Cut):
            make(run_dir, mix, cut=cut, resume=count > 0 or None, data=data()).train()
    resumed = make(run_dir, mix, resume=True, data=data())
    resumed.train()
    assert_same_end(resumed, whole)


class Even(Hook):
    """Draws from both streams alike from the tenth iteration on."""

    takes_part_in_training = True

    def after_train_iter(self, run):
        if run.progress.iter == 10:
            run.train_data.mix = {"a": 1, "b": 1}


@pytest.mark.slow
def test_weights_that_a_hook_has_set_last(tmp_path):
    mix, notes = {"a": 1, "b": 0}, [NoteStreams(), NoteStreams()]
    whole = straight(tmp_path, mix, hooks=[Even(), notes[0]])
    assert set(notes[0].seen[:10]) == {"a"}
    assert set(notes[0].seen[10:]) == {"a", "b"}
    with pytest.raises(Cut):
        make(tmp_path / "cut", mix, cut=14, hooks=[Even()]).train()
    resumed = make(tmp_path / "cut", mix, resume=True, hooks=[Even(), notes[1]])
    resumed.train()
    assert notes[1].seen == notes[0].seen[14:]
    assert_same_bits(resumed.run.model, whole.run.model)


@pytest.mark.slow
@pytest.mark.parametrize("mix", ["zip", "in order"])
def test_with_epochs_of_a_fixed_length(tmp_path, mix):
    options = {"data.epoch_iters": 4, "max_epochs": 4}
    whole = straight(tmp_path, mix, **options)
    assert whole.run.progress.iter == 16
    assert_same_end(cut_and_resumed(tmp_path, mix, 3, 4, 9, 13, **options), whole)


@pytest.mark.slow
@pytest.mark.parametrize("mix", ["zip", {"a": 3, "b": 1}], ids=str)
def test_a_training_continued_in_the_same_process_is_one_longer_training(tmp_path, mix):
    whole = straight(tmp_path, mix)
    parts = make(tmp_path / "parts", mix, max_epochs=1)
    parts.train()
    parts.train(max_epochs=3)
    assert_same_bits(whole.run.model, parts.run.model)
