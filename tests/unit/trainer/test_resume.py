"""A run that was cut off anywhere and resumed ends with the same bits as one that was not."""

import random

import numpy as np
import pytest
import torch
from tests.names import epoch_file
from tests.tiny import assert_same_bits
from torch.utils.data import DataLoader, Dataset

from hookloop.engine.hook import Hook
from hookloop.hooks import SaveCheckpoint, StepSchedules
from hookloop.testing import RecordCalls, tiny_trainer
from hookloop.trainer.settings import gathered
from hookloop.trainer.trainer import Trainer


class Augmented(Dataset):
    """Samples with noise from all three generators."""

    def __init__(self, count: int = 23) -> None:
        self.inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))
        self.reads: list[int] = []

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.reads.append(index)
        noise = torch.rand(4) + random.random() + np.random.rand()
        return self.inputs[index] + noise, self.inputs[index].sum(0, keepdim=True)


class Endless:
    def __iter__(self):
        while True:
            yield torch.ones(3, 4), torch.ones(3, 1)


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter([(torch.ones(4), torch.ones(1))] * 10)


class WithGenerator(Augmented):
    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(0)


class Cut(Exception):
    pass


class CutAt(Hook):
    """Cuts the run off in the middle of an iteration."""

    def __init__(self, iteration: int | None) -> None:
        self.iteration = iteration

    def after_backward(self, run):
        if run.progress.iter == self.iteration:
            raise Cut


def make(run_dir, *, cut=None, every="2 iters", workers=0, resume=None, data=None, **options):
    if isinstance(data, dict):  # The settings of the group, and not a loader.
        options["data"], data = data, None
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Dropout(0.4), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(Augmented(), batch_size=3, shuffle=True, num_workers=workers)
    settings = {
        "train_data": loader if data is None else data,
        "val_data": DataLoader(Augmented(6), batch_size=4, shuffle=True),
        "loss": torch.nn.functional.mse_loss,
        "optimizer": optimizer,
        "schedule": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97),
        "max_epochs": 3,
        "seed": 5,
    }
    hooks = [StepSchedules(), SaveCheckpoint(every=every, keep=None), CutAt(cut)]
    return Trainer(
        model,
        hooks=[*hooks, *options.pop("hooks", [])],
        default_hooks=False,
        run_dir=run_dir,
        resume=resume,
        **gathered(settings | options),
    )


def straight(tmp_path, **options):
    trainer = make(tmp_path / "straight", **options)
    trainer.train()
    return trainer


def cut_and_resumed(tmp_path, *cuts, **options):
    run_dir = tmp_path / "cut"
    for count, cut in enumerate(cuts):
        with pytest.raises(Cut):
            make(run_dir, cut=cut, resume=count > 0 or None, **options).train()
    trainer = make(run_dir, resume=True, **options)
    trainer.train()
    return trainer


def assert_same_end(one: Trainer, other: Trainer) -> None:
    assert one.run.progress == other.run.progress
    assert_same_bits(one.run.model, other.run.model)
    for name in ("exp_avg", "exp_avg_sq"):
        ours, theirs = (
            [state[name] for state in t.run.optimizer.state.values()] for t in (one, other)
        )
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert one.run.metrics.state_dict() == other.run.metrics.state_dict()


@pytest.mark.parametrize("cut", [2, 3, 7, 8, 9, 15, 16, 17, 23])
def test_a_cut_at_any_iteration_changes_nothing(tmp_path, cut):
    assert_same_end(cut_and_resumed(tmp_path, cut), straight(tmp_path))


@pytest.mark.slow
def test_many_cuts_change_nothing(tmp_path):
    assert_same_end(cut_and_resumed(tmp_path, 3, 5, 6, 11, 17, 20), straight(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"accumulate": 3},
        {"data.epoch_iters": 5},
        {"val_every": 4},
        {"max_epochs": None, "max_iters": 19},
        {"precision": "fp16"},
        {"every": "1 epoch"},
        {"every": "3 iters", "val_every": "2 epochs", "val_every.at_start": True},
    ],
    ids=str,
)
def test_every_way_to_train_resumes_exactly(tmp_path, options):
    cuts = (2, 6) if "accumulate" in options else (9, 12)
    assert_same_end(cut_and_resumed(tmp_path, *cuts, **options), straight(tmp_path, **options))


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [(2, 2), (1, 2), (2, 1)])
def test_randomness_in_workers_is_repeated_for_any_number_of_them(tmp_path, first, then):
    run_dir = tmp_path / "cut"
    with pytest.raises(Cut):
        make(run_dir, cut=11, workers=first).train()
    resumed = make(run_dir, workers=then, resume=True)
    resumed.train()
    assert_same_end(resumed, straight(tmp_path, workers=1))


@pytest.mark.slow
def test_persistent_workers_resume_exactly(tmp_path):
    def loader():
        return DataLoader(
            Augmented(), batch_size=3, shuffle=True, num_workers=2, persistent_workers=True
        )

    run_dir = tmp_path / "cut"
    with pytest.raises(Cut):
        make(run_dir, cut=11, data=loader()).train()
    resumed = make(run_dir, resume=True, data=loader())
    resumed.train()
    whole = make(tmp_path / "straight", data=loader())
    whole.train()
    assert_same_end(resumed, whole)


@pytest.mark.slow
@pytest.mark.parametrize(("cut", "every"), [(8, 1), (9, "1 epoch"), (16, 1), (17, "1 epoch")])
def test_persistent_workers_resume_exactly_at_the_border_of_an_epoch(tmp_path, cut, every):
    def loaders():
        train, val = (
            DataLoader(
                Augmented(count), batch_size=3, shuffle=True, num_workers=1, persistent_workers=True
            )
            for count in (23, 6)
        )
        return {"data": train, "val_data": val, "every": every}

    run_dir = tmp_path / "cut"
    with pytest.raises(Cut):
        make(run_dir, cut=cut, **loaders()).train()
    resumed = make(run_dir, resume=True, **loaders())
    resumed.train()
    assert_same_end(resumed, straight(tmp_path, **loaders()))


@pytest.mark.slow
def test_a_generator_of_a_validation_loaders_own_is_continued(tmp_path):
    def loader():
        generator = torch.Generator().manual_seed(9)
        return DataLoader(Augmented(6), batch_size=4, shuffle=True, generator=generator)

    run_dir = tmp_path / "cut"
    with pytest.raises(Cut):
        make(run_dir, cut=11, val_data=loader()).train()
    resumed = make(run_dir, resume=True, val_data=loader())
    resumed.train()
    assert_same_end(resumed, straight(tmp_path, val_data=loader()))


@pytest.mark.slow
def test_a_generator_of_the_loaders_own_is_continued(tmp_path):
    def loader():
        generator = torch.Generator().manual_seed(9)
        return DataLoader(Augmented(), batch_size=3, shuffle=True, generator=generator)

    run_dir = tmp_path / "cut"
    with pytest.raises(Cut):
        make(run_dir, cut=11, data=loader()).train()
    resumed = make(run_dir, resume=True, data=loader())
    resumed.train()
    whole = make(tmp_path / "straight", data=loader())
    whole.train()
    assert_same_end(resumed, whole)


@pytest.mark.slow
def test_a_loader_with_a_state_of_its_own_is_used_through_it(tmp_path):
    class Counting:
        """Reads numbered batches and knows where it is."""

        def __init__(self) -> None:
            self.next = 0
            self.loaded: list[int] = []

        def __iter__(self):
            while self.next < 7:
                self.next += 1
                generator = torch.Generator().manual_seed(self.next)
                yield torch.randn(3, 4, generator=generator), torch.ones(3, 1)
            self.next = 0

        def state_dict(self):
            return {"next": self.next}

        def load_state_dict(self, state):
            self.loaded.append(state["next"])
            self.next = state["next"]

    run_dir = tmp_path / "cut"
    with pytest.raises(Cut):
        make(run_dir, cut=11, data=Counting()).train()
    data = Counting()
    resumed = make(run_dir, resume=True, data=data)
    resumed.train()
    whole = make(tmp_path / "straight", data=Counting())
    whole.train()
    assert data.loaded == [3]
    assert_same_end(resumed, whole)


def test_the_data_before_the_place_is_not_read(tmp_path):
    run_dir = tmp_path / "cut"
    with pytest.raises(Cut):
        make(run_dir, cut=6).train()  # the checkpoint is that of iteration 6, of 8 in the epoch
    data = Augmented()
    loader = DataLoader(data, batch_size=3, shuffle=True)
    make(run_dir, resume=True, data=loader, max_epochs=1).train()
    # The list has the 18 samples of the checkpoint, and the last two batches: three and two.
    assert len(data.reads) == 18 + 5


@pytest.mark.slow
def test_a_validation_that_was_due_is_run_once_on_resume(tmp_path):
    class CutInValidation(Hook):
        def __init__(self, at):
            self.at = at
            self.seen = []

        def before_val_iter(self, run):
            if run.progress.iter == self.at:
                raise Cut

        def after_val_epoch(self, run, metrics):
            self.seen.append(run.progress.iter)

        def after_epoch(self, run):
            self.seen.append("epoch")

    run_dir, watch = tmp_path / "cut", CutInValidation(16)
    with pytest.raises(Cut):
        make(run_dir, hooks=[watch]).train()
    assert watch.seen == [8, "epoch"]
    again = CutInValidation(None)
    resumed = make(run_dir, hooks=[again], resume=True)
    resumed.train()
    assert again.seen == [16, "epoch", 24, "epoch"]
    assert_same_end(resumed, straight(tmp_path))


@pytest.mark.slow
def test_resuming_a_finished_run_changes_nothing(tmp_path):
    first = straight(tmp_path)
    files = sorted(path.name for path in (tmp_path / "straight").iterdir())
    again = make(tmp_path / "straight", resume=True)
    assert again.train().status == "completed"
    assert_same_end(again, first)
    assert sorted(path.name for path in (tmp_path / "straight").iterdir()) == files


@pytest.mark.slow
@pytest.mark.parametrize("every", [None, "2 iters"])
@pytest.mark.parametrize(("first", "val_every"), [(5, "1 epoch"), (7, "3 iters"), (8, "3 epochs")])
def test_a_run_that_ended_with_a_validation_can_be_made_longer(tmp_path, first, val_every, every):
    # The validation of the end draws, for its order and its samples. A run that is long from the
    # start does not make it.
    settings = {"max_epochs": None, "val_every": val_every, "every": every}
    whole = make(tmp_path / "whole", max_iters=11, **settings)
    whole.train()
    make(tmp_path / "run", max_iters=first, **settings).train()
    longer = make(tmp_path / "run", max_iters=11, resume=tmp_path / "run", **settings)
    longer.train()
    for one, other in zip(
        whole.run.model.state_dict().values(), longer.run.model.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other)


@pytest.mark.slow
def test_a_longer_run_continues_a_shorter_one(tmp_path):
    make(tmp_path / "cut", max_epochs=2).train()
    longer = make(tmp_path / "cut", max_epochs=4, resume=True)
    longer.train()
    assert_same_end(longer, straight(tmp_path, max_epochs=4))


@pytest.mark.slow
@pytest.mark.parametrize("first", [8, 16])
def test_a_run_that_ended_on_the_last_batch_of_an_epoch_can_be_continued(tmp_path, first):
    make(tmp_path / "cut", max_epochs=None, max_iters=first).train()
    longer = make(tmp_path / "cut", max_epochs=None, max_iters=20, resume=True)
    longer.train()
    whole = make(tmp_path / "straight", max_epochs=None, max_iters=20, val_every={"begin": 99})
    whole.train()
    assert longer.run.progress.iter == whole.run.progress.iter == 20
    assert longer.run.progress.epoch == whole.run.progress.epoch == 2


@pytest.mark.slow
def test_a_checkpoint_does_not_grow_with_the_run(tmp_path):
    # `Augmented` notes what it reads, which is state of the user's and grows.
    plain = torch.utils.data.TensorDataset(torch.rand(23, 4), torch.rand(23, 1))
    data = {name: DataLoader(plain, batch_size=3, shuffle=True) for name in ("data", "val_data")}
    make(tmp_path / "r", max_epochs=40, every="10 epochs", **data).train()
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "r").glob("epoch_*.pth")}
    assert sizes[epoch_file(40)] - sizes[epoch_file(20)] < 1000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (lambda: (x for x in [(torch.ones(3, 4), torch.ones(3, 1))]), "read only once"),
        (Endless, "not a DataLoader"),
        (lambda: DataLoader(Stream(), batch_size=2), "data set is iterable"),
        (lambda: DataLoader(WithGenerator(), 2, num_workers=1), "generator of its own"),
        (lambda: DataLoader(WithTransform(), 2, num_workers=1), "own ('transform.rng')"),
    ],
)
def test_a_loader_that_cannot_be_exact_is_named_at_start(tmp_path, caplog, data, reason):
    make(tmp_path / "r", data=data(), max_epochs=None, max_iters=1).train()
    assert [r.getMessage() for r in caplog.records if "may not be exact" in r.getMessage()]
    assert reason in caplog.text


def test_leaving_workers_to_torch_is_named_at_start(tmp_path, caplog):
    make(tmp_path / "r", workers=1, max_epochs=1, **{"data.seed_samples": False}).train()
    assert "seed_samples=False" in caplog.text


class WithTransform(Augmented):
    def __init__(self):
        super().__init__()
        self.transform = WithGenerator()


@pytest.mark.slow
def test_a_completed_run_is_loaded_and_neither_trained_nor_validated_again(tmp_path, caplog):
    def begin(**options):
        recorder = RecordCalls(lambda run: run.progress.iter)
        defaults = {"default_hooks": {"console": None}, "run_dir": tmp_path / "run"}
        return tiny_trainer(recorder, **(defaults | options)), recorder

    first, _ = begin(max_epochs=2)
    outcome = first.train()
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    again, recorder = begin(max_epochs=2, resume=True)
    assert again.train() == outcome
    points = {point for point, _ in recorder.calls}
    assert not points & {"before_val", "before_train", "before_save_checkpoint"}
    assert "has completed before: there is nothing left to train" in caplog.text
    after = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    del before["run.log"], after["run.log"]
    assert after == before
    assert again.run.progress == first.run.progress or again.run.progress.iter == 6
    weights = zip(first.run.model.parameters(), again.run.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)
    assert again.test() == first.test()

    # It can be continued, in the same process and in another, as if it had been longer.
    longer, _ = begin(max_epochs=4, run_dir=tmp_path / "longer")
    longer.train()
    again.train(max_epochs=3)
    last, _ = begin(max_epochs=4, resume="auto")
    last.train()
    weights = zip(longer.run.model.parameters(), last.run.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)


def test_a_completed_run_without_its_last_checkpoint_is_trained_again(tmp_path):
    options = {"default_hooks": {"console": None}, "run_dir": tmp_path, "max_epochs": 2}
    tiny_trainer(**options).train()
    (tmp_path / epoch_file(2)).unlink()
    trainer = tiny_trainer(**options, resume=True)
    trainer.train()
    assert trainer.run.progress.iter == 6
    assert (tmp_path / epoch_file(2)).exists()
