"""Each example trains for a little while, and does what it promises."""

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from hookloop.cli.main import cli

pytestmark = pytest.mark.slow  # Every example trains.

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def fresh_imports(monkeypatch):
    """Forget what an example imported: each has modules beside its config, some of one name."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in {"data", "model"} & before:
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(EXAMPLES)):
            del sys.modules[name]


def train(example, run_dir, *overrides):
    arguments = ["train", str(EXAMPLES / example / "config.yaml"), "--run-dir", str(run_dir)]
    result = CliRunner().invoke(cli, [*arguments, *overrides], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def records(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def values(run_dir, name):
    return [record[name] for record in records(run_dir) if name in record]


def weights(run_dir):
    last = (run_dir / "last_checkpoint").read_text().strip()
    return torch.load(run_dir / Path(last).name, weights_only=True)["model"]


def assert_equal_bits(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def test_the_digits_are_learnt(tmp_path):
    output = train("digits", tmp_path / "run", "max_epochs=4")
    accuracies = values(tmp_path / "run", "test/accuracy")
    assert accuracies[-1] > 0.9
    assert "test/accuracy" in output
    assert str(tmp_path / "run") in output
    assert (tmp_path / "run" / "epoch_4.pth").exists()


def test_the_digits_that_were_mistaken_are_drawn(tmp_path):
    train("digits", tmp_path / "run", "max_epochs=1", "hooks.mistakes.limit=3")
    text = (tmp_path / "run" / "mistakes_val.txt").read_text()
    assert text.count("classified as a") == 3


def test_the_splits_of_the_digits_do_not_overlap(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "digits")
    from data import Digits

    splits = [Digits(split) for split in ("train", "val", "test")]
    assert sum(map(len, splits)) == 1797
    images = torch.cat([split.images.flatten(1) for split in splits])
    assert len(images.unique(dim=0)) == len(images)


def test_the_language_model_learns_and_writes(tmp_path):
    run_dir = tmp_path / "run"
    train("char_lm", run_dir, "max_epochs=2", "train_data.length=10000", "val_data.length=2000")
    before, after = values(run_dir, "val/loss")
    assert after < before < 3.33  # The loss of knowing nothing about 28 characters.
    samples = (run_dir / "samples.txt").read_text().split("--- iteration ")[1:]
    assert len(samples) == 2
    assert all(len(sample) > 200 for sample in samples)


def test_the_language_has_the_entropy_that_it_claims(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "char_lm")
    from language import ALPHABET, write

    text, information = write(200_000, seed=3)
    assert set(text) == set(ALPHABET)
    _, other = write(200_000, seed=4)
    assert information == pytest.approx(other, rel=0.02)


def test_the_gan_updates_two_networks_with_two_optimizers(tmp_path):
    train("gan", tmp_path / "short", "max_iters=1", "epoch_iters=1", "hooks=[]")
    train("gan", tmp_path / "long", "max_iters=60", "epoch_iters=30", "hooks.0.every=30")
    first, last = weights(tmp_path / "short"), weights(tmp_path / "long")
    for network in ("generator", "discriminator"):
        assert not torch.equal(first[f"{network}.0.weight"], last[f"{network}.0.weight"])
    near = values(tmp_path / "long", "points/near")
    assert all(0 <= share <= 1 for share in near)
    assert (tmp_path / "long" / "points.txt").read_text().strip()


def test_points_are_drawn_where_they_are(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "gan")
    from judging import draw

    points = torch.tensor([[-1.5, 1.0], [2.5, -1.0], [9.0, -9.0]])
    assert draw(points, rows=2, columns=6, reach=3.0) == " :\n     @"


@pytest.mark.parametrize(
    ("example", "script", "arguments", "overrides"),
    [
        ("gan", "train_gan.py", ["--max-iters", "20"], ["max_iters=20"]),
        (
            "char_lm",
            "train_char_lm.py",
            ["--max-epochs", "1", "--length", "10000"],
            ["max_epochs=1", "train_data.length=10000"],
        ),
    ],
)
def test_script_and_config_train_the_same_bits(
    tmp_path, monkeypatch, capsys, example, script, arguments, overrides
):
    train(example, tmp_path / "config", *overrides)
    script_dir = tmp_path / "script"
    monkeypatch.setattr(sys, "argv", [script, "--run-dir", str(script_dir), *arguments])
    runpy.run_path(str(EXAMPLES / example / script), run_name="__main__")
    assert_equal_bits(weights(tmp_path / "config"), weights(script_dir))
