import gc
import weakref

import numpy as np
import pytest
import torch
from tests.readback import png
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import LinkError
from hookloop.hooks import WriteTo
from hookloop.hooks.showing._figures import file_name, moment_label, new_figure, save_picture
from hookloop.writers.base import Writer
from hookloop.writers.records import Image


class Draw(Hook):
    """Saves a picture after each validation."""

    def __init__(self, make_picture, folder="pictures"):
        self.make_picture = make_picture
        self.folder = folder
        self.moments = []

    def after_val(self, run):
        self.moments.append(moment_label(run))
        file = run.dir / self.folder / f"{file_name('val', moment_label(run))}.png"
        save_picture(run, "val/picture", self.make_picture(), file, "a caption")


class Keep(Writer):
    """A writer that keeps what it gets."""

    def __init__(self):
        self.records = []

    def write(self, records):
        self.records += records

    def close(self):
        pass


def train(tmp_path, *hooks, **options):
    return make_trainer(hooks=hooks, val_data=make_data(4), run_dir=tmp_path, **options).train()


def make_figure():
    figure = new_figure(3, 2)
    figure.subplots().plot([1, 2, 3])
    return figure


@pytest.mark.parametrize(
    ("make_picture", "shape"),
    [
        (make_figure, (200, 300, 3)),
        (lambda: torch.rand(3, 5, 7), (5, 7, 3)),  # channels first
        (lambda: np.zeros((5, 7, 3), np.uint8), (5, 7, 3)),  # channels last
    ],
)
def test_a_picture_reaches_its_file_and_the_writers(make_picture, shape, tmp_path):
    kept = Keep()
    train(tmp_path, Draw(make_picture), WriteTo(lambda run: kept))
    file = tmp_path / "pictures" / "val_epoch_1.png"
    assert png(file).shape == shape
    (image,) = (record for record in kept.records if isinstance(record, Image))
    assert (image.name, image.caption, image.file) == ("val/picture", "a caption", file)


@pytest.mark.parametrize(
    ("val_every", "moments"),
    [("1 epoch", ["epoch 1", "epoch 2"]), (2, ["iter 2", "iter 4", "iter 6"])],
)
def test_files_are_named_after_the_epoch_or_the_iteration_within_one(val_every, moments, tmp_path):
    draw = Draw(lambda: torch.zeros(1, 2, 2))
    train(tmp_path, draw, val_every=val_every, max_epochs=2)  # Three iterations per epoch.
    assert draw.moments == moments
    files = {path.stem for path in (tmp_path / "pictures").iterdir()}
    assert files == {f"val_{moment.replace(' ', '_')}" for moment in moments}


def test_a_link_in_the_way_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "pictures").symlink_to(elsewhere)
    with pytest.raises(LinkError):
        train(tmp_path / "run", Draw(lambda: torch.zeros(1, 2, 2)))
    assert not list(elsewhere.iterdir())


@pytest.mark.slow
def test_a_figure_is_freed_when_nobody_uses_it():
    figure = make_figure()
    alive = weakref.ref(figure)
    del figure
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("val", "epoch 1"), "val_epoch_1"),
        (("val/clean", "batch", 0), "val_clean_batch_0"),
        (("../../outside",), None),
        (("a\\b:c*",), None),
    ],
)
def test_a_file_name_has_no_directories(words, name):
    made = file_name(*words)
    assert "/" not in made and made not in ("", ".", "..")
    if name is not None:
        assert made == name
