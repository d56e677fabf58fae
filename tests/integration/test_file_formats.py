"""docs/reference/files.md describes every field that a real run writes, and no other."""

import json
import random
import re
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tiny import make_classes, make_classifier
from torch.utils.data import DataLoader

from hookloop import Hook, Resume, hooks
from hookloop.runs import RunDir, read_interventions
from hookloop.runs.tags import add_tags
from hookloop.writers import Text

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"
NOT_HERE = {"starts[].torch.hip", "starts[].torch.cudnn"}  # Other builds of torch have them.
NAMES = ("summary", "checkpoints", "environment", "hooks", "trackers", "tags")


class EmitText(Hook):
    def after_train_epoch(self, run):
        run.emit(Text("note", f"epoch {run.progress.epoch}"))


class FailLater(Hook):
    on_error = "disable"

    def after_train_iter(self, run):
        raise ValueError("this hook is broken")


def train_child(home, parent):
    """Train a run that begins with another one's checkpoint, and saves elsewhere."""
    save = hooks.SaveCheckpoint(directory=home / "disk")
    make_classifier(
        run_dir=home / "child", max_epochs=3, hooks=[save, hooks.WriteMetrics()], resume=parent
    ).train()


def train(directory, *, rate, **options):
    trainer = make_classifier(
        setup={"config": {"optimizer": {"lr": rate}}},
        run_dir=directory,
        max_epochs=2 if "resume" in options else 1,
        default_hooks={
            "console": None,
            "checkpoint": hooks.SaveCheckpoint(best="val/loss", keep_best=2),
        },
        hooks=[
            FailLater(),
            EmitText(),
            hooks.StopAfter(epochs=9),
            hooks.RecordHookTimes(file=None),  # In so short a run nothing else is measured.
            hooks.RecordFingerprints(every=1),
            hooks.WriteTrackio(),
        ],
        **options,
    )
    for group in trainer.run.optimizer.param_groups:
        group["lr"] = rate
    trainer.train()
    return trainer


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was trained, resumed with another rate, tested and tagged."""
    home = tmp_path_factory.mktemp("formats")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACKIO_DIR", str(home / "trackio"))
        patch.setenv("OMP_NUM_THREADS", "1")
        train(home / "run", rate=0.1)
        changed = Resume(home / "run", change=["optimizer.lr"])
        train(home / "run", rate=0.01, resume=changed).test()
    train_child(home, home / "run/epoch_1.pth")
    add_tags(RunDir(home / "run"), ["baseline"])
    return home / "run"


def described(heading):
    section = (
        PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    )
    return re.findall(r"^\| `([^`]+)` \|", section, flags=re.MULTILINE)


def paths(value, prefix=""):
    """Every key of nested mappings and lists, as the page writes it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [(path := f"{prefix}.{key}".lstrip(".")), *paths(inner, path)]
    if isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{prefix}[]")


def matches(path, pattern):
    """Whether a pattern of the page stands for this path; a metric's name may have a dot."""
    return fnmatchcase(path.replace("[]", "()"), pattern.replace("[]", "()"))


def compare(written, patterns, exempt=()):
    unknown = {path for path in written if not any(matches(path, one) for one in patterns)}
    assert not unknown, "not described"
    unused = {one for one in patterns if not any(matches(path, one) for path in written)}
    assert unused <= set(exempt), "described, and not written"


@pytest.mark.parametrize("name", [f"{name}.json" for name in NAMES])
def test_the_page_describes_every_field(run, name):
    written = set(paths(json.loads((run / name).read_text(encoding="utf-8"))))
    other = {"summary.json": "child", "checkpoints.json": "disk/child"}.get(name)
    if other is not None:  # Not every run has a parent, and a store of its own.
        written |= set(paths(json.loads((run.parent / other / name).read_text(encoding="utf-8"))))
    if name == "summary.json":  # They have a section of their own.
        written = {path for path in written if not path.startswith("changes[]")}
    compare(written, described(name), NOT_HERE)


def test_the_page_describes_the_index_of_media(run):
    lines = (run / "media.jsonl").read_text(encoding="utf-8").splitlines()
    compare({path for line in lines for path in paths(json.loads(line))}, described("media.jsonl"))


def test_the_page_describes_the_lines_of_the_metrics(run):
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    compare(
        {path for line in lines for path in paths(json.loads(line))}, described("metrics.jsonl")
    )
    assert {json.loads(line)["phase"] for line in lines} == {"train", "val", "test"}


def test_the_page_describes_fingerprints(run):
    lines = (run / "fingerprints.jsonl").read_text(encoding="utf-8").splitlines()
    written = {path for line in lines for path in json.loads(line)}
    compare(written, described("fingerprints.jsonl"))


class ValidateAndGoBack(Hook):
    takes_part_in_training = True

    def after_train_iter(self, run):
        if run.progress.iter == 4:
            run.validate()
            run.save()
        if run.progress.iter == 6 and not run.progress.skipped_iters:
            run.rewind(4, skip=[6], reason="a test")


def test_the_page_describes_the_record_of_interventions(tmp_path, run):
    shuffled = DataLoader(make_classes().dataset, batch_size=4, sampler=OwnOrder(12))
    options = {"train_data": shuffled, "run_dir": tmp_path, "setup": {"config": {"note": 1}}}
    default_hooks = {"console": None, "checkpoint": hooks.SaveCheckpoint()}
    for end in ({"max_epochs": 3}, {"max_epochs": 4, "resume": True}):
        make_classifier(
            hooks=[ValidateAndGoBack()], default_hooks=default_hooks, **options, **end
        ).train()
    lines = read_interventions(RunDir(tmp_path))
    kinds = dict.fromkeys(line["what"] for line in lines)
    assert [*kinds] == ["start", "pass", "validation", "rewind", "end", "change"]
    as_in = {"torch", "device", "gpus", "driver", "threads", "cpu_capability", "variables"}
    written = {path for line in lines for path in paths(line)}
    written = {path for path in written if path.partition(".")[0] not in as_in}
    # A request is in the tests of the hook that answers it, and so is what hooks have found out.
    elsewhere = {"do", "by", "torch", "same", "short", "planted"}
    elsewhere |= {"verdict", "jump", "window", "evidence", "place", "core"}
    compare(written, described("interventions.jsonl"), elsewhere)
    named = re.search(r"^\| (`torch`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert named is not None and set(re.findall(r"`(\w+)`", named[1])) == as_in
    starts = [line for line in lines if line["what"] == "start"]
    (earlier, *_) = json.loads((tmp_path / "environment.json").read_text())["starts"]
    assert all(starts[0][name] == earlier[name] for name in as_in)


class OwnOrder(torch.utils.data.Sampler):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        numbers = [random.random() + np.random.rand() for _ in range(self.count)]
        return iter(sorted(range(self.count), key=numbers.__getitem__))

    def __len__(self):
        return self.count


def test_the_page_describes_changes(run):
    (change,) = RunDir(run).read_summary()["changes"]
    assert set(change) == set(described("changes"))
    assert change["how"] == "resumed"


def test_the_page_describes_the_parts_of_a_checkpoint(run):
    checkpoint = torch.load(run / "epoch_2.pth", weights_only=True)
    assert set(checkpoint) == set(described("Checkpoints"))


def test_the_page_names_every_file(run):
    named = set(re.findall(r"`([\w.]+)`", PAGE.read_text(encoding="utf-8").partition("\n## ")[0]))
    files = {path.name for path in run.iterdir() if path.is_file()}
    unnamed = {name for name in files if name not in named and not name.endswith(".pth")}
    assert unnamed <= {".lock"}
