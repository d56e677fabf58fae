"""Whole OpenMMLab projects train on the graft as with the real runner, and survive a kill."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
PROJECTS = {
    "mmpretrain": [
        "--cfg-options",
        "train_dataloader.num_workers=2",
        "val_dataloader.num_workers=1",
    ],
    "mmseg": [],
    "mmagic": [],
}  # fmt: skip
STAND_INS = {"mmagic": "stand_ins_of_mmagic"}
"""Where what a project imports and does not need is, if not with the others."""


def train(project, directory, *, graft, kill_at=None, resume=False):
    """Run the project's own tools/train.py."""
    package = Path(find_spec(project).origin).parent
    script = package / ".mim" / "tools" / "train.py"
    config = HERE / "projects" / f"{project}_config.py"
    command = [sys.executable]
    command += ["-m", "hookloop", "run", "--graft", "mmengine"] if graft else []
    command += [str(script), str(config), "--work-dir", str(directory)]
    command += ["--resume"] if resume else []
    places = [HERE / "projects", HERE.parent / STAND_INS.get(project, "stand_ins")]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "CONFIGS": str(package / ".mim" / "configs"),
        "KILL_AT": "" if kill_at is None else str(kill_at),
    }
    done = subprocess.run(
        [*command, *PROJECTS[project]],
        env=environment, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == (9 if kill_at is not None else 0), done.stderr[-3000:]


def numbers(directory):
    """Return what the project's logger wrote, without times."""
    lines = []
    for path in sorted(Path(directory).glob("*/vis_data/scalars.json")):
        for text in path.read_text().splitlines():
            line = json.loads(text)
            lines.append({key: line[key] for key in line if "time" not in key and key != "memory"})
    return lines


def files(directory):
    names = (str(path.relative_to(directory)) for path in Path(directory).rglob("*"))
    return {re.sub(r"\d{8}_\d{6}", "TIME", name) for name in names}


def weights(directory):
    name = (directory / "last_checkpoint").read_text()
    loaded = torch.load(directory / Path(name).name, weights_only=False)
    return {key: loaded["state_dict"][key] for key in sorted(loaded["state_dict"])}


def is_equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("project", "kill_at"),
    [
        ("mmpretrain", 9),
        ("mmagic", None),
        pytest.param("mmagic", 13, marks=pytest.mark.long),
        pytest.param("mmseg", 13, marks=pytest.mark.long),
    ],
)
def test_a_project_trains_as_with_the_real_runner_and_survives_a_kill(project, kill_at, tmp_path):
    real, ours, cut = (tmp_path / name for name in ("real", "ours", "cut"))
    train(project, real, graft=False)
    train(project, ours, graft=True)
    assert numbers(ours) == numbers(real)
    assert len(numbers(ours)) > 15
    assert is_equal(weights(ours), weights(real))
    assert files(ours) - files(real) == {
        "checkpoints.json",
        "run.log",
        "interventions.jsonl",
        "trained_with.yaml",
    }
    assert not files(real) - files(ours)
    if kill_at is None:
        return
    train(project, cut, graft=True, kill_at=kill_at)
    train(project, cut, graft=True, resume=True)
    assert is_equal(weights(cut), weights(ours))
    assert numbers(cut)[-3:] == numbers(ours)[-3:]
