"""A model card is made of text that strangers wrote."""

import yaml
from tests.names import epoch_file

from hookloop.runs.card import Facts, escape, model_card


def card(**facts: object) -> str:
    about = {"hookloop": "1", "checkpoint": epoch_file(3), "iter": 9, "epoch": 3}
    return model_card(Facts(name="digits", weights="model.safetensors", about=about, **facts))


def test_it_tells_what_was_trained_and_how_to_load_it() -> None:
    text = card(
        config={"model": {"type": "net.Net", "width": 8}, "optimizer": {"type": "SGD", "lr": 0.1}},
        summary={
            "status": "completed",
            "metrics": {"val/accuracy": 0.5, "train/iter_time": 0.1},
            "best": {"val/accuracy": {"value": 0.75, "epoch": 2}},
        },
        environment={"torch": "2.9", "git": {"commit": "abc123"}, "packages": {"numpy": "2.0"}},
        seconds=3725.2,
        parameters=1234,
    )
    header = yaml.safe_load(text.split("---")[1])
    assert header["library_name"] == "hookloop"
    for found in (
        "| model | net.Net |",
        "1,234",
        "1:02:05",
        r"| val/accuracy |  | 0.5 | 0.75 \(epoch 2\) |",
        'load_file("model.safetensors")',
        "lr: 0.1",
        "| git: commit | abc123 |",
        "| numpy | 2.0 |",
    ):
        assert found in text
    assert "iter\\_time" not in text


def test_it_does_without_what_a_run_did_not_write() -> None:
    text = card()
    assert "The run recorded none." in text
    assert "## Config" not in text and "## Environment" not in text


def test_text_of_strangers_stays_text() -> None:
    evil = "a|b</td><script>alert(1)</script> [x](http://bad) `code` *b*\n# Title \x1b[31m"
    text = card(
        config={"model": evil, "note": "````\n# not a heading"},
        summary={"metrics": {evil: 1.0}, "status": evil, "best": [1]},
        environment={"torch": evil, "packages": {evil: evil}, "gpu": [evil]},
    )
    outside, _, block = text.partition("## Config")
    for part in (outside, block.partition("## Environment")[2]):
        assert "<script" not in part and "](http" not in part and "\x1b" not in text
        assert "\n# Title" not in part
    assert "`````yaml" in block  # A fence that the text cannot close.


def test_escaping_is_readable() -> None:
    assert escape("val/accuracy") == "val/accuracy"
    assert escape("x" * 300).endswith("...")
    assert escape(None) == "None"
