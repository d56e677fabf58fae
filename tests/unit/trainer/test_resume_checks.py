"""What a resume compares, and the words in which it tells of differences."""

import pytest
import torch
from tests.names import epoch_file
from tests.tiny import make_model, make_trainer

from hookloop.errors import CheckpointError
from hookloop.hooks import SaveCheckpoint
from hookloop.trainer.intended_changes import Resume
from hookloop.trainer.resume_checks import find_differences, is_meant
from hookloop.trainer.settings import SETTINGS


def save(tmp_path, **options):
    make_trainer(run_dir=tmp_path, hooks=[SaveCheckpoint("1 epoch")], **options).train()


def test_every_compared_argument_is_kept_in_checkpoints(tmp_path):
    save(tmp_path, accumulate=2, val_every=5)
    kept = torch.load(tmp_path / epoch_file(1), weights_only=True)["arguments"]
    compared = [path.split(".") for path, one in SETTINGS.items() if one.is_compared]
    for argument, *name in compared:
        assert argument in kept
        assert argument == "val_every" or not name or name[0] in kept[argument]
    values = (kept["accumulate"], kept["val_every"], kept["setup"]["prepare"])
    assert values == (2, "5 iters", [])


def test_other_arguments_are_reported_in_one_line(tmp_path, caplog):
    save(tmp_path)
    make_trainer(
        run_dir=tmp_path, resume=True, max_epochs=2, accumulate=3, clip_norm=1.0, seed=1
    ).train()
    (line,) = [one.getMessage() for one in caplog.records if "arguments" in one.getMessage()]
    assert line == (
        "Resumed with other arguments: accumulate: 1 -> 3; clip_norm: None -> 1.0; seed: None -> 1"
    )


def test_what_may_differ_freely_is_not_reported(tmp_path, caplog):
    save(tmp_path, val_every="1 epoch")
    make_trainer(
        run_dir=tmp_path, resume=True, max_iters=5, max_epochs=3, device="cpu", val_every="1 epoch"
    ).train()
    assert "Resumed with" not in caplog.text


def test_a_second_resume_compares_nothing_that_torch_added_at_the_first(tmp_path):
    # `load_state_dict` adds "differentiable" to the defaults of every optimizer.
    def train(epochs, resume=True):
        model = torch.nn.EmbeddingBag(5, 1, sparse=True)
        return make_trainer(
            model=model,
            optimizer=torch.optim.SparseAdam(model.parameters()),
            train_data=[torch.tensor([[0, 1]]), torch.tensor([[2, 3]])],
            step=lambda run, batch: run.model(batch).square().mean(),
            run_dir=tmp_path,
            hooks=[SaveCheckpoint("1 epoch", keep=None)],
            resume=epochs > 1 and resume,
            max_epochs=epochs,
        ).train()

    assert [train(epochs).status for epochs in (1, 2, 3)] == ["completed"] * 3
    first, second = (
        torch.load(tmp_path / epoch_file(n), weights_only=True)["kinds"] for n in (1, 2)
    )
    assert first == second
    # Checkpoints of earlier versions have it.
    old = torch.load(tmp_path / epoch_file(3), weights_only=True)
    old["kinds"]["optimizers"]["default"]["differentiable"] = False
    torch.save(old, tmp_path / "old.pth")
    assert train(4, resume=tmp_path / "old.pth").status == "completed"


def test_a_checkpoint_of_an_earlier_version_has_nothing_to_compare(tmp_path, caplog):
    save(tmp_path)
    old = torch.load(tmp_path / epoch_file(1), weights_only=True)
    del old["arguments"], old["changes"]
    torch.save(old, tmp_path / "old.pth")
    again = tmp_path / "again"
    make_trainer(run_dir=again, resume=tmp_path / "old.pth", max_epochs=2, accumulate=2).train()
    assert "arguments" not in caplog.text


def test_a_change_that_is_meant_is_not_reported(tmp_path, caplog):
    save(tmp_path)
    trainer = make_trainer(
        run_dir=tmp_path, resume=Resume(True, change="accumulate"), max_epochs=2, accumulate=2
    )
    trainer.train()
    assert "Resumed with" not in caplog.text
    assert trainer.run._internals.changes == [
        {"iter": 3, "key": "accumulate", "old": 1, "new": 2, "how": "resumed"}
    ]


def test_the_message_names_the_way_to_change_an_optimizer(tmp_path):
    save(tmp_path)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.1)
    trainer = make_trainer(
        model=model, optimizer=optimizer, run_dir=tmp_path, resume=True, max_epochs=2
    )
    with pytest.raises(CheckpointError) as caught:
        trainer.train()
    assert "--change on the command line" in str(caught.value)
    assert "Resume(..., change=['optimizer.lr', 'optimizer.momentum'])" in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: torch.optim.Adam(m.parameters()),
        lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.5),
    ],
)
def test_a_part_whose_state_does_not_fit_cannot_be_changed(tmp_path, make):
    model = make_model()
    adam = torch.optim.AdamW(model.parameters(), lr=0.05)
    save(tmp_path, model=model, optimizer=adam)
    other = make_model()
    trainer = make_trainer(
        model=other,
        optimizer=make(other),
        run_dir=tmp_path,
        resume=Resume(True, change="optimizer"),
        max_epochs=2,
    )
    with pytest.raises(CheckpointError, match="Go back to the old one"):
        trainer.train()


def test_a_misspelled_change_is_rejected_with_the_nearest(tmp_path):
    save(tmp_path)
    trainer = make_trainer(
        run_dir=tmp_path, resume=Resume(True, change=["acumulate"]), max_epochs=2
    )
    with pytest.raises(CheckpointError, match="'accumulate'"):
        trainer.train()


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        ("optimizer.lr", ["optimizer.lr"], True),
        ("optimizer.lr", ["optimizer"], True),
        ("optimizer.lr", ["optimizer.l"], False),
        ("hooks", ["hooks.ema.decay"], True),
        ("optimizer.lr", [], False),
    ],
)
def test_a_change_covers_what_is_below_it(path, change, expected):
    assert is_meant(path, change) == expected


def test_long_values_are_cut():
    (line,) = map(str, find_differences({"a": "x" * 500}, {"a": "y"}))
    assert len(line) < 230
