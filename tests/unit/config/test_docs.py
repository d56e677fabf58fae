"""The configs in docs/config.md are good configs."""

import re
import sys
from pathlib import Path

import pytest

from hookloop.config.blueprint import draw
from hookloop.config.load import load
from hookloop.config.schema import KEYS

PAGE = Path(__file__).parents[3] / "docs" / "config.md"

MODULES = {
    "models": "class Net:\n    def __init__(self, width: int = 2): ...\n",
    "data": (
        "def loader(split: str, batch_size: int): ...\n"
        "class Digits:\n    def __init__(self, split: str): ...\n"
        "def collate(samples): ...\n"
    ),
    "metrics": "def accuracy(output, targets): ...\n",
    "steps": "def generator_step(run, batch): ...\ndef discriminator_step(run, batch): ...\n",
    "hooks": (
        "from hookloop import Hook\n"
        "class MyHook(Hook):\n"
        "    def __init__(self, arg1: int = 1): ...\n"
        "    def after_train_iter(self, run): ...\n"
        "class Report(Hook):\n"
        "    def __init__(self, url: str, header: dict[str, str]): ...\n"
        "    def after_train_iter(self, run): ...\n"
    ),
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.fixture(autouse=True)
def _project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPORT_PASSWORD", "the-password-of-a-page")
    monkeypatch.setenv("REPORT_TOKEN", "the-token-of-a-page")
    package = project / "my_project"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in MODULES.items():
        (package / f"{name}.py").write_text(text)
    (project / "base.yaml").write_text(
        "model: my_project.models.Net\nmax_epochs: 2\n"
        "optimizer: {type: AdamW, betas: [0.9, 0.99]}\n"
        "hooks: {stop: {type: StopAfter, epochs: 1}}\n"
    )


@pytest.mark.parametrize("text", blocks("yaml"), ids=lambda text: text.split("\n")[0])
def test_a_yaml_example_has_no_problem(text: str) -> None:
    if "model:" not in text and "_base_" not in text:
        text = f"model: my_project.models.Net\n{text}"
    Path("example.yaml").write_text(text)
    draw(load("example.yaml"))


def test_the_python_example_has_no_problem() -> None:
    (text,) = (block for block in blocks("python") if "default_hooks = " in block)
    Path("example_config.py").write_text(text)
    draw(load("example_config.py"))
    sys.modules.pop("example_config")


def test_every_key_is_documented() -> None:
    page = PAGE.read_text()
    table = page[page.index("## Keys") : page.index("## Objects")]
    assert not [key for key in KEYS if f"`{key}`" not in table]
