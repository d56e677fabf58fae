"""Each example trains for a little while, and does what it promises."""

import gzip
import json
import math
import runpy
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from tests.names import epoch_file, iter_file

from hookloop.cli.main import cli
from hookloop.errors import DataError, ModelError

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
    assert (tmp_path / "run" / epoch_file(4)).exists()


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
    train("gan", tmp_path / "short", "max_iters=1", "data.epoch_iters=1", "hooks=[]")
    train("gan", tmp_path / "long", "max_iters=60", "data.epoch_iters=30", "hooks.0.every=30")
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


def write_idx(file, values):
    header = bytes([0, 0, 8, values.ndim]) + b"".join(n.to_bytes(4, "big") for n in values.shape)
    file.write_bytes(gzip.compress(header + values.numpy().tobytes()))


@pytest.fixture
def clothes(tmp_path):
    """Files in the format of Fashion-MNIST, in which the bright half of a picture is its class."""
    generator = torch.Generator().manual_seed(0)
    for prefix, count in (("train", 480), ("t10k", 100)):
        targets = torch.randint(0, 2, (count,), generator=generator)
        pictures = torch.randint(0, 60, (count, 28, 28), generator=generator)
        rows = torch.arange(28)[None, :, None] >= 14
        pictures += 150 * (rows == targets.bool()[:, None, None])
        write_idx(tmp_path / f"{prefix}-images-idx3-ubyte.gz", pictures.byte())
        write_idx(tmp_path / f"{prefix}-labels-idx1-ubyte.gz", targets.byte())
    return tmp_path


def test_clothes_are_learnt(clothes):
    run_dir = clothes / "run"
    small = ["model.width=4", "train_data.batch_size=32", "train_data.augment=false"]
    output = train("fashion", run_dir, f"vars.root={clothes}", "max_epochs=3", *small)
    assert values(run_dir, "test/accuracy")[-1] > 0.9
    assert "best_accuracy" in output  # The best was tested, and not the last.


def test_clothes_are_read_as_they_were_written(clothes, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "fashion")
    from clothes import Clothes, read_idx, shift

    splits = [Clothes(split, clothes) for split in ("train", "val", "test")]
    assert list(map(len, splits)) == [440, 40, 100]
    picture, _ = splits[2][0]
    assert picture.shape == (1, 28, 28) and picture.mean().abs() < 2
    block = torch.zeros(1, 28, 28)
    block[..., 10:12, 10:12] = 1
    assert all((shift(block) == 1).sum() == 4 for _ in range(20))
    for content, message in ((b"", "does not begin"), (b"\0\0\x08\x01\0\0\0\x09a", "cut off")):
        (clothes / "bad.gz").write_bytes(gzip.compress(content))
        with pytest.raises(DataError, match=message):
            read_idx(clothes / "bad.gz")


def test_clothes_that_are_not_installed_are_said_to_be_missing(tmp_path):
    config = str(EXAMPLES / "fashion" / "config.yaml")
    result = CliRunner().invoke(cli, ["train", config, f"vars.root={tmp_path}"])
    assert result.exit_code == 2
    assert "apt-get install dataset-fashion-mnist" in result.output


def test_the_gpt_counts_tokens_and_writes(tmp_path):
    run_dir = tmp_path / "run"
    parts = [f"{d}_data.{k}.modules=12" for d in ("train", "val") for k in ("code", "prose")]
    small = ["model.width=32", "model.layers=1", "max_iters=30", "data.epoch_iters=30"]
    intervals = ["val_every=20k tokens", "hooks.speed.every=10", "hooks.writing.length=20"]
    train("gpt", run_dir, *parts, *small, *intervals)
    losses = values(run_dir, "val/code/loss")
    assert len(losses) > 2 and losses[-1] < losses[0]
    assert len(values(run_dir, "val/prose/loss")) == len(losses)
    assert all(speed > 0 for speed in values(run_dir, "train/tokens_per_second"))
    assert (run_dir / "samples.txt").read_text().count("--- iteration ") == len(losses)
    last = torch.load(run_dir / iter_file(30), weights_only=True)
    assert last["progress"]["tokens"] > 20_000 * (len(losses) - 1)


def test_two_microbatches_of_the_gpt_are_one_batch(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "gpt")
    from hookloop import Trainer

    from corpus import collate
    from gpt_model import GPT, step

    long, short = [0, *range(1, 40), 0], [0, 5, 0]
    weights = []
    for batches, accumulate in (
        ([collate([long, short])], 1),
        ([collate([long]), collate([short])], 2),
    ):
        torch.manual_seed(0)
        model = GPT(width=16, layers=1, heads=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        parts = {"step": step, "optimizer": optimizer, "accumulate": accumulate}
        Trainer(model, train_data=batches, max_iters=1, default_hooks=False, **parts).train()
        weights.append(torch.cat([value.flatten() for value in model.state_dict().values()]))
    assert torch.allclose(*weights, atol=1e-6)


def test_the_baselines_of_the_gpt_are_what_they_claim(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "gpt")
    from baselines import losses

    from corpus import VOCABULARY

    found = losses("code", modules=20)
    assert found["bigram"] < found["unigram"] < math.log(VOCABULARY)


def test_a_text_classifier_thaws_its_encoder(tmp_path):
    run_dir = tmp_path / "run"
    # Random weights have much to learn, unlike those of the pre-trained encoder.
    rates = ["hooks.thaw.rates=0.005", "max_epochs=6", "train_data.batch_size=16"]
    train("fine_tune", run_dir, "vars.encoder=tiny", "val_data.most=100", *rates)
    before, *_, after = values(run_dir, "val/accuracy")
    assert after > before + 0.1
    assert values(run_dir, "test/accuracy")[-1] > 0.4  # One of eight is right by chance.
    earlier, later = (
        torch.load(run_dir / name, weights_only=True)["model"]
        for name in (epoch_file(5), epoch_file(6))
    )
    name = "body.embeddings.weight"
    assert not torch.equal(earlier[name], later[name])


def test_a_missing_encoder_is_said_to_be_missing(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "fine_tune")
    import encoders

    monkeypatch.setattr(encoders, "PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match=r"'hookloop\[fine-tune\]'"):
        encoders.find_minilm()


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
