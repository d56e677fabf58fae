"""What the pages on capabilities show really runs, and their configs build."""

import re
from pathlib import Path

import pytest

from hookloop.config.build import build
from hookloop.config.load import load

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["watching", "averaging-and-schedules", "profiling", "logging"]
CONFIG = """\
model:
  type: torch.nn.Sequential
  args:
    - {type: torch.nn.Linear, in_features: 8, out_features: 8}
    - {type: torch.nn.BatchNorm1d, num_features: 8}
    - {type: torch.nn.Linear, in_features: 8, out_features: 2}
train_data: {type: pages_data.batches}
val_data: {type: pages_data.batches}
test_data: {type: pages_data.batches}
loss: cross_entropy
metrics: {accuracy: pages_data.accuracy}
optimizer: {type: SGD, lr: 0.1, weight_decay: 0.1}
max_epochs: 2
seed: 0
default_hooks: {console: null}
"""
DATA = """\
import torch

def batches():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(64, 8, generator=generator)
    return list(zip(inputs.split(8), (inputs.sum(1) > 0).long().split(8)))

def accuracy(output, targets):
    return (output.argmax(1) == targets).float().mean()
"""


def blocks(page, language):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks(page, "python"):
        exec(compile(block, f"{page}.md", "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_the_hooks_of_a_page_train_from_a_config(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages_data.py").write_text(DATA)
    (hooks,) = blocks(page, "yaml")
    (tmp_path / "config.yaml").write_text(CONFIG + hooks)
    trainer = build(load(tmp_path / "config.yaml"))
    assert trainer.train().status == "completed"
    trainer.test()
