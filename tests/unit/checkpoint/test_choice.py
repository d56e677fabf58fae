"""Which checkpoint of a run is used for its weights."""

from pathlib import Path

import pytest
import torch
from tests.tiny import make_classifier, make_trainer

from hookloop import Hook, Run
from hookloop.checkpoint.choice import choose, describe_weights, hash_of
from hookloop.checkpoint.named import find_best, load_named
from hookloop.errors import CheckpointError
from hookloop.hooks import AverageWeights, SaveCheckpoint


def train(run_dir: Path, *hooks: object, **saving: object) -> torch.nn.Module:
    trainer = make_classifier(
        hooks=[SaveCheckpoint(**saving), *hooks], run_dir=run_dir, max_epochs=3
    )
    trainer.train()
    return trainer.run.model


def test_the_last_is_taken_where_no_best_is_kept(tmp_path: Path) -> None:
    model = train(tmp_path)
    chosen = choose(tmp_path)
    assert chosen.kind == "last" and chosen.part == "model" and chosen.path.endswith("epoch_3.pth")
    assert all(torch.equal(chosen.weights[n], v) for n, v in model.state_dict().items())
    label = f"weights of '{tmp_path}/epoch_3.pth' (last, iteration 9)"
    assert str(chosen) == f"{label}, of run {chosen.run_id}"
    with pytest.raises(CheckpointError, match="keeps no best checkpoint"):
        choose(tmp_path, "best")


def test_the_best_is_taken_where_one_is_kept(tmp_path: Path) -> None:
    train(tmp_path, best=["loss", "accuracy"])
    chosen = choose(tmp_path)
    assert chosen.kind == "best" and "best_loss" in chosen.path
    assert choose(tmp_path, "last").kind == "last"
    named = choose(tmp_path, Path(chosen.path).name)
    assert named.kind == "file" and named.saved == chosen.saved


class Peak(Hook):
    """Puts a number that is best after the second epoch, long before the loss."""

    writes = ("val/peak",)

    def after_val_epoch(self, run: Run, metrics: object) -> None:
        run.metrics.put("val/peak", -abs(run.progress.epoch - 2))


@pytest.mark.parametrize("best", [["loss", "peak"], ["peak", "loss"]])
def test_of_several_bests_the_one_of_the_metric_that_was_named_first_is_taken(
    tmp_path: Path, best: list[str]
) -> None:
    rules = ["less" if metric == "loss" else "greater" for metric in best]
    train(tmp_path, Peak(), best=best, rule=rules)
    bests = find_best(tmp_path)
    assert (bests["loss"].iter, bests["peak"].iter) == (9, 6)
    chosen = choose(tmp_path)
    assert chosen.path == load_named("best", tmp_path)[0] == f"{tmp_path}/{bests[best[0]].name}"
    assert chosen.saved == bests[best[0]] and chosen.iteration == bests[best[0]].iter
    assert chosen.others == (bests[best[1]].name,)


def test_a_best_whose_file_is_gone_is_not_taken(tmp_path: Path) -> None:
    train(tmp_path, best=["loss", "accuracy"])
    Path(choose(tmp_path, "best").path).unlink()
    assert "best_accuracy" in choose(tmp_path, "best").path
    Path(choose(tmp_path, "best").path).unlink()
    assert choose(tmp_path).kind == "last"
    with pytest.raises(CheckpointError, match="epoch_2.pth"):
        choose(tmp_path, "best")


def test_a_store_that_was_not_given_is_named_and_not_opened(tmp_path: Path) -> None:
    train(tmp_path / "run", directory=str(tmp_path / "store"), best="loss")
    with pytest.raises(CheckpointError, match="store/run/.*--checkpoint"):
        choose(tmp_path / "run")


def test_averaged_weights_are_those_with_which_the_run_evaluated(tmp_path: Path) -> None:
    model = train(tmp_path, AverageWeights())
    chosen = choose(tmp_path)
    assert chosen.part == "averaged" and str(chosen).startswith("averaged weights of")
    name, raw = next(iter(model.state_dict().items()))
    assert not torch.equal(chosen.weights[name], raw)


def test_another_store_of_the_run_is_searched(tmp_path: Path) -> None:
    train(tmp_path / "run", directory=str(tmp_path / "store"))
    assert choose(tmp_path / "run", stores=[str(tmp_path / "store" / "run")]).kind == "last"


def test_a_file_of_weights_alone_is_taken(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"w": torch.ones(2)}, tmp_path / "a.safetensors")
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pth")
    torch.save({"note": "nothing"}, tmp_path / "b.pth")
    for name in ("a.safetensors", "a.pth"):
        assert choose(tmp_path, str(tmp_path / name)).weights["w"].tolist() == [1, 1]
    with pytest.raises(CheckpointError, match="has no weights under"):
        choose(tmp_path, "b.pth")
    (tmp_path / "c.safetensors").write_text("not tensors")
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        choose(tmp_path, "c.safetensors")


def test_what_is_not_there_is_rejected(tmp_path: Path) -> None:
    make_trainer(run_dir=tmp_path / "run").train()  # No hook saves.
    with pytest.raises(CheckpointError, match="has no checkpoint"):
        choose(tmp_path / "run")
    with pytest.raises(CheckpointError, match="'best'"):
        choose(tmp_path / "run", "bets")


def test_the_metadata_tells_where_the_weights_come_from(tmp_path: Path) -> None:
    train(tmp_path)
    about = describe_weights(choose(tmp_path), {"seed": 1})
    assert about["iter"] == 9 and about["epoch"] == 3 and "val/accuracy" in about["metrics"]
    assert about["config_sha256"] == hash_of({"seed": 1, "import_path": ["anywhere"]})
    assert about["config_sha256"] != hash_of({"seed": 2})
