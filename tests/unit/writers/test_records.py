import csv
import io

import numpy as np
import pytest
import torch

from hookloop.secret import hide
from hookloop.writers.records import Config, Graph, Histogram, Image, Scalars, Table, Text


@pytest.mark.parametrize(
    "record",
    [
        Image("a", [[0.0]]),
        Text("a", "b"),
        Histogram("a", [1.0]),
        Table("a", ["b"], [[1]]),
    ],
)
def test_a_record_gets_a_step_once(record):
    stepped = record.at(7)
    assert (record.step, stepped.step, stepped.at(9).step) == (None, 7, 7)
    assert type(stepped) is type(record) and stepped.name == "a"


def test_a_step_of_zero_is_a_step():
    assert Text("a", "b", 0).at(5).step == 0


def test_records_without_a_step_stay_as_they_are():
    for record in (Config({"a": 1}), Graph(torch.nn.Identity(), None), Scalars({"a": 1.0}, 3)):
        assert record.at(9) is record


def test_an_image_keeps_its_pixels_when_it_gets_a_step():
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    image = Image("a", pixels, caption="b").at(3)
    assert np.array_equal(image.pixels, pixels) and image.caption == "b"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_histogram_holds_a_copy_of_the_finite_values(dtype):
    source = torch.ones(2, 3, dtype=dtype)
    histogram = Histogram("a", source)
    source.zero_()
    assert histogram.values.tolist() == [1.0] * 6 and histogram.values.dtype == np.float32
    mixed = Histogram("a", np.array([1.0, np.inf, -np.inf, np.nan, 2.0]))
    assert mixed.values.tolist() == [1.0, 2.0]


def test_a_histogram_accepts_a_parameter_with_a_gradient():
    assert Histogram("a", torch.nn.Parameter(torch.ones(2))).values.tolist() == [1.0, 1.0]


def test_secrets_are_removed_from_text():
    hide("a-token-of-this-test", "${secret:TOKEN}")
    assert Text("note", "key a-token-of-this-test!").text == "key ${secret:TOKEN}!"


def test_a_table_is_read_back_from_csv():
    rows = [["cat, the", 'a "b"'], ["line\nbreak", ""]]
    text = Table("t", ["x", "y"], rows).to_csv()
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["x", "y"], *rows]


def test_a_table_without_rows_has_its_header():
    table = Table("t", ["x", "y"], [])
    assert table.to_csv() == "x,y\n" and table.to_markdown() == "| x | y |\n|---|---|"


def test_a_config_is_flattened_to_dotted_paths():
    config = Config({"a": {"b": [1, {"c": 2}], "d": None}, "e": (3,), "f": "text", "g": {}})
    assert config.flat() == {"a.b.0": 1, "a.b.1.c": 2, "a.d": None, "e.0": 3, "f": "text"}


def test_a_record_cannot_be_changed():
    with pytest.raises(AttributeError):
        Text("a", "b").text = "c"
