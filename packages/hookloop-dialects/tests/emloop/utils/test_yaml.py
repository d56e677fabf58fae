"""Read and write YAML."""

from datetime import datetime
from pathlib import Path

from hookloop_dialects.emloop.utils.yaml import load_yaml, reload, yaml_to_file, yaml_to_str


def test_what_is_written_is_read(tmp_path):
    data = {"rate": 1e-3, "names": ["a"], "none": None}
    path = yaml_to_file(data, str(tmp_path), "a.yaml")
    assert path == str(tmp_path / "a.yaml") and load_yaml(path) == data
    assert Path(path).read_text() == yaml_to_str(data)
    assert reload(data) == data and reload(data) is not data


def test_numbers_with_an_exponent_are_numbers(tmp_path):
    (tmp_path / "a.yaml").write_text("rate: 1e-3")
    assert load_yaml(str(tmp_path / "a.yaml")) == {"rate": 0.001}


def test_a_moment_is_written():
    assert "2024-01-02" in yaml_to_str({"begin": datetime(2024, 1, 2)})
