from pathlib import Path

import pytest

from hookloop.config.blueprint import import_path
from hookloop.config.load import load
from hookloop.config.tree import Config
from hookloop.errors import ConfigError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(**files: str) -> None:
    for name, text in files.items():
        Path(f"{name}.yaml").write_text(text)


def problem(path: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path)
    return str(caught.value)


def problems(config: Config) -> list[str]:
    return [str(problem) for problem in config.problems]


def test_a_child_is_merged_over_its_base() -> None:
    write(
        base="optimizer: {type: SGD, lr: 1e-3}\nhooks: {ema: {type: E, momentum: 0.9}, log: A}\n",
        child="_base_: base.yaml\noptimizer: {lr: 0.5}\nhooks: {ema: {momentum: 0.5}, log: null}\n",
    )
    config = load("child.yaml")
    assert config.tree == {
        "optimizer": {"type": "SGD", "lr": 0.5},
        "hooks": {"ema": {"type": "E", "momentum": 0.5}, "log": None},
    }
    assert config.where(("optimizer", "type")) == "base.yaml:1"
    assert config.where(("optimizer", "lr")) == "child.yaml:2"


def test_bases_are_relative_to_their_file_and_the_last_wins() -> None:
    Path("bases").mkdir()
    Path("bases/one.yaml").write_text("seed: 1\nmax_epochs: 1\n")
    Path("bases/two.yaml").write_text("_base_: one.yaml\nseed: 2\n")
    Path("bases/three.py").write_text("seed = 3\n")
    write(child="_base_: [bases/two.yaml, bases/three.py]\naccumulate: 4\n")
    tree = load("child.yaml").tree
    assert tree.pop("import_path") == [str(Path.cwd()), str(Path.cwd() / "bases")]
    assert tree == {"seed": 3, "max_epochs": 1, "accumulate": 4}


def test_delete_replaces_instead_of_merging_and_leaves_no_trace() -> None:
    write(
        base="optimizer: {type: AdamW, betas: [0.9, 0.99], nested: {a: 1}}\n",
        child="_base_: base.yaml\noptimizer: {_delete_: true, type: S, nested: {_delete_: true}}\n",
    )
    assert load("child.yaml").tree == {"optimizer": {"type": "S", "nested": {}}}


def test_bases_in_a_circle_are_rejected() -> None:
    write(a="_base_: b.yaml\n", b="seed: 1\n_base_: c.yaml\n", c="_base_: a.yaml\n")
    assert problem("a.yaml") == (
        "c.yaml:1: '_base_' forms a circle: a.yaml -> b.yaml -> c.yaml -> a.yaml."
    )


def test_a_missing_base_is_named_with_its_place_and_the_nearest_file() -> None:
    write(a="seed: 1\n_base_: bsae.yaml\n", base="seed: 2\n")
    assert problem("a.yaml") == (
        "a.yaml:2: there is no config file 'bsae.yaml'. Did you mean 'base.yaml'?"
    )


def test_a_missing_file_is_rejected_with_the_nearest() -> None:
    write(config="seed: 1\n")
    assert problem("confg.yaml") == (
        "there is no config file 'confg.yaml'. Did you mean 'config.yaml'?"
    )


def test_other_files_are_rejected() -> None:
    Path("config.toml").write_text("")
    assert problem("config.toml") == (
        "'config.toml' is not a config file: it must be .yaml, .yml, .json, .py."
    )
    Path("bad.yaml").write_bytes(b"\xff\xfe\x00")
    assert "bad.yaml: not a text file in UTF-8" in problem("bad.yaml")


def test_a_run_directory_stands_for_its_written_config() -> None:
    Path("runs/one").mkdir(parents=True)
    assert problem("runs/one") == "the directory 'runs/one' has no config.yaml."
    Path("runs/one/config.yaml").write_text("seed: 5\n")
    assert load("runs/one").tree == {"seed": 5}


def test_python_and_yaml_give_the_same_tree() -> None:
    Path("same.py").write_text(
        "hooks = [dict(StopAfter=dict(epochs=3)), 'LogMetrics']\noptimizer = dict(lr=1e-3)\n"
    )
    write(same="hooks:\n  - StopAfter: {epochs: 3}\n  - LogMetrics\noptimizer: {lr: 1e-3}\n")
    assert load("same.py").tree == load("same.yaml").tree


def test_overrides_come_before_references_are_resolved() -> None:
    write(a="vars: {lr: 0.1}\noptimizer: {lr: '${vars.lr}'}\nname: lr ${vars.lr}\n")
    assert load("a.yaml", ["vars.lr=0.5"]).tree == {
        "vars": {"lr": 0.5},
        "optimizer": {"lr": 0.5},
        "name": "lr 0.5",
    }


def test_problems_of_several_stations_are_kept_together() -> None:
    write(a="seed: 1\nseed: 2\nname: ${nmae}\n")
    config = load("a.yaml", ["seed"])
    assert problems(config) == [
        "a.yaml:2: 'seed' is given twice, first in line 1.",
        "command line: seed: an override is written key=value, without spaces.",
        "a.yaml:3: name: '${nmae}' refers to nothing. Did you mean 'name'?",
    ]


def test_modules_beside_a_base_in_another_directory_are_found() -> None:
    Path("shared").mkdir()
    Path("shared/shared_net.py").write_text("class Net: ...\n")
    Path("exp").mkdir()
    Path("exp/own_net.py").write_text("class Net: ...\n")
    Path("shared/base.yaml").write_text("import_path: [., ../lib]\nmodel: shared_net.Net\n")
    Path("exp/middle.yaml").write_text("_base_: ../shared/base.yaml\nseed: 1\n")
    Path("child.yaml").write_text("_base_: exp/middle.yaml\n")
    here = Path.cwd()
    wanted = [here, here / "exp", here / "shared", here / "lib"]
    assert import_path(load("child.yaml")) == wanted
    assert import_path(load("child.yaml", ["import_path=lib"])) == [here / "lib", here]


def test_an_import_path_may_hold_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT", "/somewhere")
    write(a="import_path: ${env:PROJECT}/lib\n", b="_base_: a.yaml\n")
    assert import_path(load("a.yaml"))[0] == Path("/somewhere/lib")
    assert import_path(load("b.yaml"))[:2] == [Path.cwd(), Path("/somewhere/lib")]
