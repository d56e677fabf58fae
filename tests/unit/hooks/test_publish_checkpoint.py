import hashlib
import logging
import uuid

import fsspec
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tests.names import epoch_file
from tests.tiny import make_data, make_trainer, weights

from hookloop.checkpoint.export.publish import read_metadata
from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.engine.hook import Hook
from hookloop.errors import HookError, HookloopError
from hookloop.hooks import AverageWeights, PublishCheckpoint, SaveCheckpoint
from hookloop.runs.checkpoint_names import best_name


def train(run_dir, hook, *, save=None, hooks=(), **options):
    trainer = make_trainer(
        hooks=[save or SaveCheckpoint(), *hooks, hook],
        val_data=make_data(4),
        run_dir=run_dir,
        max_epochs=2,
        **options,
    )
    trainer.train()
    return trainer


def published(run_dir):
    """Return the published files, those of torch first."""
    # Only their names have a dash, before the digits of the hash.
    files = [path for path in run_dir.iterdir() if "-" in path.name]
    return sorted(files, key=lambda path: (path.suffix, path.name))


def test_it_writes_the_weights_alone_in_both_formats_named_after_their_hash(tmp_path):
    trainer = train(tmp_path, PublishCheckpoint())
    pth, safe = published(tmp_path)
    for path in (pth, safe):
        digits = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        assert path.name == f"epoch_2-{digits}{path.suffix}"
    plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    plain.load_state_dict(torch.load(pth, weights_only=True))
    loaded, own = load_file(safe), weights(trainer.run.model)
    assert all(torch.equal(value, own[name]) for name, value in weights(plain).items())
    assert loaded.keys() == own.keys()
    assert all(torch.equal(loaded[name], own[name]) for name in own)


def test_the_best_ones_are_published_too_or_alone(tmp_path):
    save = SaveCheckpoint(best="loss")
    hook = PublishCheckpoint(which=["best"], formats=["pth"])
    train(tmp_path / "one", hook, save=save)
    (path,) = published(tmp_path / "one")
    assert path.name.startswith("best_loss_epoch_")
    # The loss falls, so the greatest one is from the first epoch and not the last checkpoint.
    hook = PublishCheckpoint(formats=["pth"])
    train(tmp_path / "two", hook, save=SaveCheckpoint(best="loss", rule="greater"))
    assert len(published(tmp_path / "two")) == 2


def test_a_checkpoint_that_is_last_and_best_is_published_once(tmp_path):
    train(tmp_path, PublishCheckpoint(), save=SaveCheckpoint(best="loss"))
    paths = published(tmp_path)
    assert [path.suffix for path in paths] == [".pth", ".safetensors"]
    for path in paths:
        assert path.name.startswith("epoch_2-")
        assert read_metadata(path)["checkpoints"] == [
            epoch_file(2),
            best_name("loss", epoch_file(2)),
        ]


def test_the_files_hold_epoch_and_metrics(tmp_path):
    trainer = train(tmp_path, PublishCheckpoint())
    for path in published(tmp_path):
        about = read_metadata(path)
        assert (about["epoch"], about["iter"]) == (2, trainer.run.progress.iter)
        loss = trainer.run.outcome.metrics["val/loss"]
        assert about["metrics"]["val/loss"] == pytest.approx(loss)
    (pth, safe) = published(tmp_path)
    assert torch.load(pth, weights_only=True).metadata["hookloop"]
    with safe_open(safe, "pt") as file:
        assert file.metadata()["format"] == "pt"


def test_other_parts_can_be_kept(tmp_path):
    hook = PublishCheckpoint(["model", "averaged", "progress"])
    train(tmp_path, hook, hooks=[AverageWeights(momentum=0.1)])
    pth, safe = published(tmp_path)
    assert set(torch.load(pth, weights_only=True)) == {"model", "averaged", "progress"}
    # Progress is not made of tensors, so safetensors cannot hold it.
    assert {name.split(".")[0] for name in load_file(safe)} == {"model", "averaged"}


def test_a_published_file_can_be_loaded_to_start_from(tmp_path):
    trainer = train(tmp_path, PublishCheckpoint())
    for path in published(tmp_path):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        Pretrained(path).load_into(model)
        own = weights(trainer.run.model)
        assert all(torch.equal(value, own[name]) for name, value in weights(model).items())


def test_tied_weights_are_published(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
            self.two.weight = self.one.weight

        def forward(self, inputs):
            return self.two(self.one(inputs)).sum(1, keepdim=True)

    train(tmp_path, PublishCheckpoint(), model=Tied())
    loaded = load_file(published(tmp_path)[1])
    assert torch.equal(loaded["one.weight"], loaded["two.weight"])


def test_it_publishes_where_the_checkpoints_are(tmp_path):
    url = f"memory://{uuid.uuid4().hex}"
    train(tmp_path / "run", PublishCheckpoint(), save=SaveCheckpoint(directory=url))
    files, root = fsspec.core.url_to_fs(f"{url}/run")
    assert len([path for path in files.ls(root, detail=False) if "-" in path]) == 2


def test_publishing_again_makes_the_same_files(tmp_path):
    train(tmp_path, PublishCheckpoint())
    before = published(tmp_path)
    train(tmp_path, PublishCheckpoint(), resume=True)
    assert published(tmp_path) == before


def test_a_failed_run_and_a_validation_publish_nothing(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 4:
                raise ValueError("an error of the user")

    with pytest.raises(ValueError, match="error of the user"):
        train(tmp_path, PublishCheckpoint(), hooks=[Fail()])
    assert published(tmp_path) == []
    make_trainer(
        hooks=[PublishCheckpoint()], val_data=make_data(4), run_dir=tmp_path, resume=True
    ).validate()
    assert published(tmp_path) == []


def test_a_part_that_is_not_there_is_reported_with_those_that_exist(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    trainer = train(tmp_path, PublishCheckpoint(["modle"]))
    assert trainer.run.outcome.status == "completed"
    assert "has no 'modle' to publish. Did you mean 'model'?" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"which": ["bets"]}, "which takes last and best, not 'bets'. Did you mean 'best'?"),
        ({"formats": ["pt"]}, "formats takes pth and safetensors, not 'pt'."),
        ({"keys": []}, "keys names nothing"),
    ],
)
def test_wrong_options_are_rejected(options, message):
    with pytest.raises(HookError) as caught:
        PublishCheckpoint(**options)
    assert message in str(caught.value)


def test_a_directory_gets_weights_config_and_card(tmp_path):
    to = tmp_path / "given"
    hook = PublishCheckpoint(to=to)
    trainer = train(tmp_path / "run", hook, hooks=[AverageWeights()], setup={"config": {"seed": 3}})
    assert {path.name for path in to.iterdir()} == {"model.safetensors", "config.yaml", "README.md"}
    assert not published(tmp_path / "run")
    assert read_metadata(to / "model.safetensors")["weights"] == "averaged"
    assert "| training | completed |" in (to / "README.md").read_text()
    assert (to / "config.yaml").read_text() == "seed: 3\n"
    loaded = load_file(to / "model.safetensors")
    assert set(loaded) == set(trainer.run.model.state_dict())


def test_the_card_can_be_left_out_and_a_wrong_place_is_rejected(tmp_path):
    hook = PublishCheckpoint(to=tmp_path / "given", card=False, formats=["pth"], which="last")
    train(tmp_path / "run", hook)
    assert [path.name for path in (tmp_path / "given").iterdir()] == ["model.pth"]
    with pytest.raises(HookloopError, match="hf://user/model"):
        PublishCheckpoint(to="hf://nobody")
