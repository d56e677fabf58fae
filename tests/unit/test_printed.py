"""What pages show is held against what is printed: word by word, numbers with some room."""

import pytest
from tests.names import epoch_file
from tests.printed import assert_printed, file_of, run_console


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("loss 0.5346  lr 0.01", "loss 0.5346  lr 0.01"),
        ("loss 0.5346", "loss 0.5347\n"),
        ("loss 0.16", "\x1b[1mloss\x1b[0m 0.1601"),
        ("in ...\ndone", "in 0:00:01\nand more\ndone"),
        ("...Killed", "Killed"),
        ("one\n...\ntwo", "one\ntwo"),
        ("one\n...\ntwo", "one\nmore\ntwo"),
        ("a  b", "a b"),
        (f"1e+30 and {epoch_file(1)}", f"1e+30 and {epoch_file(1)}"),
    ],
)
def test_what_agrees(shown, printed):
    assert_printed(shown, printed, "here")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("loss 0.53", "loss 0.63"),
        ("stopped", "completed"),
        ("epoch 4", "epoch 5"),
        ("one", "one\ntwo"),
        (epoch_file(1), epoch_file(2)),
        ("0.5 ... 0.7", "0.5 and 0.9"),
    ],
)
def test_what_does_not(shown, printed):
    with pytest.raises(AssertionError, match="here"):
        assert_printed(shown, printed, "here")


def test_a_block_may_be_a_file():
    assert file_of("# parts/net.py\nimport torch\n") == "parts/net.py"
    assert file_of("# config.yaml\nseed: 0\n") == "config.yaml"
    assert file_of("# A comment on net.py\n") is None


def test_commands_print_what_stands_below_them(tmp_path):
    run_console("$ echo one \\\n  two\none two\n$ echo three\n", tmp_path, "here")
    with pytest.raises(AssertionError, match="echo three"):
        run_console("$ echo three\nfour\n", tmp_path, "here")


def test_a_command_fails_where_the_page_shows_an_error_and_nowhere_else(tmp_path):
    run_console("$ echo error: no; exit 2\nerror: no\n", tmp_path, "here")
    with pytest.raises(AssertionError, match="exit 2"):
        run_console("$ echo fine; exit 2\nfine\n", tmp_path, "here")
    with pytest.raises(AssertionError, match="error: no"):
        run_console("$ echo error: no\nerror: no\n", tmp_path, "here")
