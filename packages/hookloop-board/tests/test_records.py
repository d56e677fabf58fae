"""Lines become columns of numbers, exactly as a JSON parser would read them."""

import json
import math
import random
import struct

import numpy as np
import pytest

from board_runs import record
from hookloop.runs.reading import parse_json
from hookloop_board import records
from hookloop_board.records import count_of, parse_lines, read_columns


def text(*lines):
    return "".join(
        f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines
    ).encode()


def by_json(data, monkeypatch):
    """The same lines, read by Python's own parser."""
    with monkeypatch.context() as patched:
        patched.setattr(records, "_parse", parse_json)
        return read_columns(data)


def assert_same(one, other):
    np.testing.assert_array_equal(one.is_used, other.is_used)
    for name in ("iters", "epochs", "times"):
        used = getattr(one, name)[one.is_used], getattr(other, name)[one.is_used]
        np.testing.assert_array_equal(*used)
    assert one.values.keys() == other.values.keys() == one.kinds.keys()
    for name, (rows, values) in one.values.items():
        np.testing.assert_array_equal(rows, other.values[name][0])
        np.testing.assert_array_equal(values, other.values[name][1])


def any_number(random):
    return random.choice(
        [
            random.random(),
            -random.random() * 10 ** random.randint(-300, 300),
            struct.unpack("f", struct.pack("f", random.random()))[0],
            random.randrange(10 ** random.randint(1, 30)),
            round(random.random() * 1e4, random.randint(0, 5)),
            5e-324,
            0.1 + 0.2,
            9007199254740993,
            -0.0,
            1e22,
        ]
    )


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_those_of_the_parser(seed, monkeypatch):
    source = random.Random(seed)
    lines = []
    for number in range(400):
        lines.append(
            record(number, **{"train/loss": any_number(source), "é/9": any_number(source)})
        )
        if number % 20 == 19:
            lines.append({**record(number, **{"val/acc": any_number(source)}), "phase": "val"})
        if source.random() < 0.05:
            lines.append(record(number, **{"train/loss": "NaN", "é/9": any_number(source)}))
    data = text(*lines)
    found = read_columns(data)
    assert_same(found, by_json(data, monkeypatch))
    assert found.kinds["val/acc"] == ("iter", "val")


ODD = [
    "",
    "null",
    "[1]",
    "{",
    '{"iter": true, "a": 1}',
    '{"iter": -1, "a": 1}',
    '{"iter": 1.5, "a": 1}',
    '{"a": 1}',
    '{"iter": 1, "a": 1, "a": 2}',
    '{"iter": 1, "a": [1, 2]}',
    '{"iter": 1, "a": {"b": 2}}',
    '{"iter": 1, "a": "x\\": 5, \\"b"}',
    '{"iter": 1, "a": 1}, {"iter": 2, "a": 2}',
    '{"iter": 1, "a": }',
    '{"iter": 1, "a": 1.}',
    '{"iter": 1, "a": .5}',
    '{"iter": 1, "a": 1e}',
    '{"iter": 1, "a": --1}',
    '{"iter": 1, "a": 1_0}',
    '{"iter": 1, "a": NaN}',
    '{"iter": 1, "a": 1.2.3}',
    '5{"iter": , "a": 1}',
    '{"iter": 1, "a": 1} ',
    ' {"iter": 1, "a": 1}',
    '{"iter": 1,"a": 1}',
    '{"iter": 99999999999999999999, "a": 1}',
    '{"a": 7, "iter": 1}',
    '{"iter": 1, "b": 1}',
    '{"iter": 1, "a": 1' + "0" * 400 + "}",
    "\x01\x02",
    '{"iter": 1, "a": true}',
    '{"iter": 1, "a": "Infinity"}',
    '{"epoch": -1, "iter": 1, "a": 2}',
    '{"iter": 5.0, "a": 1}',
    '{"iter": 05, "a": 1}',
    '{"iter": 1e1, "a": 1}',
]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_line_among_others_is_read_as_by_itself(odd, monkeypatch):
    usual = ['{"iter": %d, "a": %s}' % (number, number / 7) for number in range(20)]  # noqa: UP031
    for lines in ([*usual, odd, *usual], [*usual, *[odd] * 20, *usual], [odd, *usual], [odd] * 30):
        data = text(*lines)
        assert_same(read_columns(data), by_json(data, monkeypatch))


def test_random_damage_is_read_as_by_the_parser(monkeypatch):
    source = random.Random(0)
    usual = text(*(record(number, a=number / 7, b=1) for number in range(30)))
    for _ in range(300):
        data = bytearray(usual)
        for _ in range(source.randint(1, 5)):
            data[source.randrange(len(data) - 1)] = source.choice(b'0123456789.-+eE":, {}\n\\a\xff')
        found, expected = read_columns(bytes(data)), by_json(bytes(data), monkeypatch)
        assert_same(found, expected)


def test_no_lines_and_lines_that_are_too_long(monkeypatch):
    assert not read_columns(b"").values and not read_columns(b"\n").values
    monkeypatch.setattr(records, "LONGEST_LINE", 30)
    found = read_columns(
        text('{"iter": 1, "a": 1}', '{"iter": 2, "a": 1, "bbbbbbbbbbbbbbbbbbbbb": 1}')
    )
    assert found.iters[found.is_used].tolist() == [1]


def test_times_may_be_missing():
    found = read_columns(text(*({"iter": number, "a": 1.5} for number in range(20))))
    assert all(map(math.isnan, found.times)) and not found.epochs.any()


def test_lines_and_counts():
    assert list(parse_lines([b"1", b"{", b'{"a": 1}'])) == [(2, {"a": 1})]
    assert [count_of(one) for one in (3, True, -1, 1.0, 1 << 53)] == [3, None, None, None, None]
