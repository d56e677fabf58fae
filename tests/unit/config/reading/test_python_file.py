import sys
from pathlib import Path

import pytest

from hookloop.config.reading.python_file import read_python
from hookloop.config.schema import KEYS
from hookloop.config.tree import Config
from hookloop.errors import ConfigError


def read(tmp_path: Path, text: str, name: str = "read_python_case.py") -> Config:
    file = tmp_path / name
    file.write_text(text)
    return read_python(file, name, KEYS)


def test_module_level_names_form_the_tree(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        "import os\n"
        "from collections import OrderedDict\n"
        "_private = 3\n"
        "max_epochs = _private\n"
        "hooks = [dict(type='A', priority='LOW')]\n"
        "def helper(): ...\n",
    )
    assert config.tree == {"max_epochs": 3, "hooks": [{"type": "A", "priority": "LOW"}]}


def test_a_function_under_the_name_of_a_key_is_its_value(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        "def step(run, batch): ...\nclass Net: ...\nmodel = dict(type=Net)\n",
        "own_step.py",
    )
    step = config.tree["step"]
    assert callable(step)
    assert step.__module__ == "own_step"
    assert sys.modules["own_step"].step is step  # type: ignore[attr-defined]
    assert isinstance(config.tree["model"]["type"], type)  # type: ignore[index]


def test_places_reach_into_what_is_written_out(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        "if True:\n"
        "    max_epochs = 3\n"
        "default_hooks = dict(\n"
        "    a=dict(type='A'),\n"
        "    b={'type': 'B',\n"
        "       'n': 3},\n"
        ")\n"
        "hooks = [\n"
        "    'A',\n"
        "    dict(type='B'),\n"
        "]\n"
        "def loss(output, targets):\n"
        "    hooks = 3\n",
        "a.py",
    )
    assert config.where(("max_epochs",)) == "a.py:2"
    assert config.where(("default_hooks",)) == "a.py:3"
    assert config.where(("default_hooks", "a", "type")) == "a.py:4"
    assert config.where(("default_hooks", "b", "n")) == "a.py:6"
    assert config.where(("hooks", 1)) == "a.py:10"
    assert config.where(("loss",)) == "a.py:12"


def test_tuples_and_paths_become_what_yaml_would_give(tmp_path: Path) -> None:
    config = read(
        tmp_path, "from pathlib import Path\nrun_dir = Path('a')\noptimizer = {'betas': (1, 2)}\n"
    )
    assert config.tree == {"run_dir": "a", "optimizer": {"betas": [1, 2]}}


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"b\.py:2.*Python"):
        read(tmp_path, "a = 1\nb = = 2\n", "b.py")


def test_an_error_of_the_file_itself_stays_whole_with_a_note(tmp_path: Path) -> None:
    with pytest.raises(NameError) as caught:
        read(tmp_path, "max_epochs = unknown_name\n", "c.py")
    assert caught.value.__notes__ == [f"while reading the config file {tmp_path / 'c.py'}"]
    assert "c" not in sys.modules


def test_numbers_of_numpy_are_plain_ones(tmp_path: Path) -> None:
    text = "import numpy as np\nseed = np.int64(3)\noptimizer = dict(lr=np.float32(0.5))\n"
    tree = read(tmp_path, text).tree
    assert (type(tree["seed"]), tree["seed"]) == (int, 3)
    assert tree["optimizer"] == {"lr": 0.5}


def test_two_files_of_one_name_may_hold_objects(tmp_path: Path) -> None:
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
        config = read(tmp_path / directory, "loss = object()\n", "read_python_twin.py")
        assert not config.problems
        assert list(config.origins.values()) == ["read_python_twin:loss"]


def test_a_file_that_fails_leaves_another_of_its_name_in_place(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    read(tmp_path, "max_epochs = 1\n", "read_python_other.py")
    first = sys.modules["read_python_other"]
    with pytest.raises(ZeroDivisionError):
        read(tmp_path / "b", "1 / 0\n", "read_python_other.py")
    assert sys.modules["read_python_other"] is first
