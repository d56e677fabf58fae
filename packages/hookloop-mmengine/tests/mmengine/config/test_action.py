"""Options of a command line, as MMEngine reads them."""

from argparse import ArgumentParser

import pytest

from hookloop_mmengine.config import DictAction, read_base


def parse(*options):
    parser = ArgumentParser()
    parser.add_argument("--cfg-options", nargs="+", action=DictAction)
    return parser.parse_args(["--cfg-options", *options]).cfg_options


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-0.5", -0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("None", None),
        ("resnet", "resnet"),
        ("'7'", "7"),
        ("a/b.c", "a/b.c"),
        ("", ""),
        ("1,2,3", [1, 2, 3]),
        ("a,b", ["a", "b"]),
        ("[1,2]", [1, 2]),
        ("[a, b, c]", ["a", "b", "c"]),
        ("(a,1)", ("a", 1)),
        ("[(1, 2, 3), [a, b], c]", [(1, 2, 3), ["a", "b"], "c"]),
        ("[]", []),
        ("()", ()),
        ("(1,)", (1,)),
        ("[true,None]", [True, None]),
        ("x=y", "x=y"),
    ],
)
def test_values_are_read_as_mmengine_reads_them(text, value):
    found = parse(f"key={text}")["key"]
    assert found == value
    assert type(found) is type(value)


def test_paths_are_kept_for_the_config_to_resolve():
    assert parse("model.depth=50", "lr=0.1") == {"model.depth": 50, "lr": 0.1}


def test_a_later_option_wins():
    assert parse("a=1", "a=2") == {"a": 2}


def test_an_option_without_a_value_is_an_error(capsys):
    with pytest.raises(SystemExit):
        parse("model.depth")
    assert "'model.depth' is not of the form key=value" in capsys.readouterr().err


def test_reading_a_base_by_hand_does_nothing():
    with read_base() as nothing:
        assert nothing is None
