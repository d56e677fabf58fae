import errno
import io

import pytest

from hookloop.runs.shown import make_safe, make_safe_line, print_line


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ttext\nof lines", "plain\ttext\nof lines"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb", "a\\x0db"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("bytes \udcff", "bytes \\udcff"),
        ("naïve café 漢字 🎉", "naïve café 漢字 🎉"),
    ],
)
def test_codes_are_written_out_and_text_is_left_alone(text, seen):
    assert make_safe(text) == seen


def test_a_line_stays_a_line_and_is_cut():
    assert make_safe_line("a\nb\tc") == "a\\nb\\tc"
    assert make_safe_line("x" * 50, 10) == "xxxxxxx..."


class Broken(io.StringIO):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, text):
        raise OSError(self.number, "cannot")


def test_a_reader_that_has_gone_is_no_failure_and_a_full_disk_is():
    print_line(None, "nobody")
    closed = io.StringIO()
    closed.close()
    print_line(closed, "nobody")
    print_line(Broken(errno.EPIPE), "nobody")
    with pytest.raises(OSError, match="cannot"):
        print_line(Broken(errno.ENOSPC), "somebody")


def test_a_line_is_printed_as_far_as_the_stream_can_show_it():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_line(stream, "café \x1b")
    assert stream.buffer.getvalue() == b"caf? \\x1b\n"
