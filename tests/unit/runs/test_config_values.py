import pytest

from hookloop.runs import plain_yaml
from hookloop.runs.config_values import LARGEST, flatten, parse_config, read_config
from hookloop.runs.layout import RunDir

CONFIG = {
    "seed": 3,
    "name": "a: b #c",
    "model": {"type": "torch.nn.Linear", "sizes": [8, 16], "text": "one\n\ntwo: 2\n", "no": None},
    "hooks": [{"type": "StopAfter", "epochs": 3}, {"type": "WriteCSV"}],
    "optimizer": {"lr": 1e-3, "betas": [0.9, 0.99], "fused": True, "eps": float("inf")},
    "default_hooks": {},
    "long": " ".join(["word"] * 60),
    "precision": "fp32",
    "wide_key_words": "abcdefghij_k",
}


def test_the_config_of_a_run_is_read_back_flat(tmp_path):
    run = RunDir.create(tmp_path / "run")
    assert read_config(run) == {}
    run.write_config(CONFIG)
    assert read_config(run) == flatten(CONFIG)
    assert read_config(run)["hooks.0.epochs"] == 3


@pytest.mark.parametrize(
    "text",
    [
        "a: 1",
        "# a comment\na: {b: [1, 2], c: no}\n",
        "---\na: 1\n",
        "a:\n- b: 1\n  c: 2\n- d\n",
        "{a: 1, b: 2}",
        "a: 'one\nb: two'\n",
        "a: true\nb: null\nc: off\nd: 0x10\ne: 007\n",
        "a: 1\n\n\nb: 2\n",
    ],
)
def test_any_config_is_read_as_yaml_reads_it(text):
    assert parse_config(text) == flatten(plain_yaml.load(text))


@pytest.mark.parametrize(
    "text",
    ["[1, 2]", "a: [", "a: !!python/object/apply:os.system [ls]", "a: &x [1]\nb: *x\n", "text"],
)
def test_what_is_not_a_plain_config_is_rejected(text):
    with pytest.raises(ValueError, match="it is not"):
        parse_config(text)


def test_a_config_that_is_too_large_is_not_read(tmp_path):
    run = RunDir.create(tmp_path / "run")
    run.config_file.write_text("a: 1\n" * (LARGEST // 5 + 1))
    with pytest.raises(ValueError, match="larger than"):
        read_config(run)
    with pytest.raises(ValueError, match="more than"):
        flatten({str(number): 1 for number in range(10_001)})
