"""The metrics beside a checkpoint are those of its own iteration, wherever they are read."""

import pytest
import torch
from tests.names import epoch_file
from tests.tiny import make_classes, make_classifier, make_data, make_trainer, record

from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.hook import Hook
from hookloop.hooks import SaveCheckpoint
from hookloop.runs.checkpoint_names import best_name


class Fail(Hook):
    """Ends the process's training at the beginning of a validation, as a kill would."""

    def __init__(self, epoch):
        self.epoch = epoch

    def before_val(self, run):
        if run.progress.epoch == self.epoch:
            raise OSError("killed")


def entries(place):
    return CheckpointStore(place).index.entries


def validations(trainer):
    """Train, and return the results of each validation by its iteration."""
    results = {}

    @trainer.on("after_val_epoch")
    def note(run, metrics):
        results[run.progress.iter] = dict(metrics)

    trainer.train()
    return results


def of_validation(entry):
    return {name: value for name, value in entry.metrics.items() if name.startswith("val/")}


@pytest.mark.parametrize("directory", [None, "elsewhere"])
def test_each_entry_has_the_validation_of_its_own_iteration(tmp_path, directory):
    place = tmp_path / directory if directory else None
    save = SaveCheckpoint(keep=None, best="val/accuracy", directory=place)
    results = validations(make_classifier(max_epochs=4, run_dir=tmp_path / "run", hooks=[save]))
    listed = entries(place / "run" if place else tmp_path / "run")
    assert any(name.startswith("best_") for name in listed)
    for entry in listed.values():
        assert of_validation(entry) == results[entry.iter], entry.name
        assert "train/loss" in entry.metrics
        assert entry.validated


def test_an_iteration_without_a_validation_has_the_numbers_of_no_other(tmp_path):
    save = SaveCheckpoint(every="1 iters", keep=None)
    results = validations(
        make_classifier(max_epochs=2, val_every="2 iters", run_dir=tmp_path, hooks=[save])
    )
    assert set(results) == {2, 4, 6}
    for entry in entries(tmp_path).values():
        assert of_validation(entry) == results.get(entry.iter, {}), entry.name
        assert entry.validated == (entry.iter in results)


def test_the_file_holds_no_validation_but_its_own(tmp_path):
    hooks = {"all": SaveCheckpoint(), "best": SaveCheckpoint(None, best="loss", last=False)}
    make_classifier(max_epochs=2, run_dir=tmp_path, hooks=hooks).train()
    before = torch.load(tmp_path / epoch_file(2))["metrics"]
    assert set(before) == {"train/loss", "train_epoch/loss"}
    after = torch.load(tmp_path / best_name("loss", epoch_file(2)))["metrics"]
    assert after["val/loss"] == entries(tmp_path)[epoch_file(2)].metrics["val/loss"]


def test_hooks_learn_of_a_checkpoint_with_its_own_validation(tmp_path):
    learned = {}

    class Upload(Hook):
        def after_save_checkpoint(self, run, saved):
            learned[saved.name] = dict(saved.metrics)

    hooks = [SaveCheckpoint(keep=None), Upload()]
    make_classifier(max_epochs=3, run_dir=tmp_path, hooks=hooks).train()
    assert learned == {name: entry.metrics for name, entry in entries(tmp_path).items()}
    assert len(learned) == 3


def test_what_a_hook_computes_in_the_validation_belongs_to_it(tmp_path):
    class Score(Hook):
        writes = ("val/score",)

        def after_val_epoch(self, run, metrics):
            run.metrics.put("val/score", run.progress.epoch)

    save = SaveCheckpoint(keep=None, best="val/score", rule="greater")
    make_classifier(max_epochs=3, run_dir=tmp_path, hooks=[Score(), save]).train()
    for entry in entries(tmp_path).values():
        assert entry.metrics["val/score"] == entry.epoch


def test_what_hooks_put_during_the_validation_is_beside_every_checkpoint_of_it(tmp_path):
    class Probe(Hook):
        def after_val_epoch(self, run, metrics):
            run.metrics.put("knn/accuracy", run.progress.epoch)

        def after_val(self, run):
            run.metrics.put("val/late", run.progress.epoch)

    save = SaveCheckpoint(keep=None, best="val/loss")
    make_classifier(max_epochs=3, run_dir=tmp_path, hooks=[Probe(), save]).train()
    for entry in entries(tmp_path).values():
        assert entry.metrics["knn/accuracy"] == entry.metrics["val/late"] == entry.epoch


@pytest.mark.parametrize("directory", [None, "elsewhere"])
def test_the_validation_that_is_due_at_a_resume_amends_the_entry(tmp_path, directory):
    home = tmp_path / directory if directory else None
    place = home / "run" if home else tmp_path / "run"

    def make(**options):
        save = SaveCheckpoint(keep=None, best="val/loss", directory=home)
        hooks = [save, *options.pop("hooks", ())]
        return make_classifier(max_epochs=3, run_dir=tmp_path / "run", hooks=hooks, **options)

    with pytest.raises(OSError, match="killed"):
        make(hooks=[Fail(2)]).train()
    cut_off = entries(place)[epoch_file(2)]
    assert set(cut_off.metrics) == {"train/loss", "train_epoch/loss"}
    assert not cut_off.validated
    results = validations(make(resume=True))
    for name, iteration in {
        epoch_file(2): 6,
        epoch_file(3): 9,
        best_name("loss", epoch_file(3)): 9,
    }.items():
        assert of_validation(entries(place)[name]) == results[iteration]


def test_a_resume_into_another_directory_leaves_the_first_as_it_is(tmp_path):
    save = [SaveCheckpoint(keep=None)]
    with pytest.raises(OSError, match="killed"):
        make_classifier(max_epochs=2, run_dir=tmp_path / "one", hooks=[*save, Fail(1)]).train()
    before = (tmp_path / "one" / "checkpoints.json").read_bytes()
    make_classifier(
        max_epochs=2,
        run_dir=tmp_path / "two",
        resume=tmp_path / "one" / epoch_file(1),
        hooks=[SaveCheckpoint(keep=None)],
    ).train()
    assert (tmp_path / "one" / "checkpoints.json").read_bytes() == before


def test_an_evaluation_by_itself_changes_no_entry(tmp_path):
    make_classifier(max_epochs=1, run_dir=tmp_path, hooks=[SaveCheckpoint()]).train()
    before = (tmp_path / "checkpoints.json").read_bytes()
    make_classifier(run_dir=tmp_path, resume=True, val_data=make_classes(4)).validate()
    assert (tmp_path / "checkpoints.json").read_bytes() == before


def test_without_validation_nothing_is_held_back(tmp_path):
    hook, calls = record(["after_save_checkpoint"], lambda run: run.progress.iter)
    make_trainer(
        train_data=make_data(4), max_epochs=3, run_dir=tmp_path, hooks=[SaveCheckpoint(), hook]
    ).train()
    assert len(calls) == 3
