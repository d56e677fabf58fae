import pytest

from hookloop.config.build import build
from hookloop.errors import ConfigError

BASE = """
model: proj.Net
train_data: proj.batches
val_data: proj.batches
loss: mse_loss
optimizer: {type: SGD, lr: 0.01}
max_epochs: 1
default_hooks: {console: null}
hooks:
"""
BEGIN = BASE.count("\n") + 1

OWN = """
from hookloop import Hook


class Typo(Hook):
    def after_trian_iter(self, run): ...


class Short(Hook):
    def after_val_epoch(self, run): ...


class Reader(Hook):
    reads = ("size",)

    def after_train_iter(self, run): ...


class Writer(Hook):
    writes = ("size",)

    def after_train_iter(self, run): ...
"""


@pytest.fixture
def make(project, write):
    (project / "own_hooks.py").write_text(OWN)

    def build_with(*hooks, overrides=()):
        return build(write(BASE + "".join(f"  {hook}\n" for hook in hooks), *overrides))

    return build_with


def problems(make, *hooks, **options):
    with pytest.raises(ConfigError) as caught:
        make(*hooks, **options)
    return str(caught.value).splitlines()


def test_all_that_is_wrong_with_hooks_is_reported_at_once_with_its_line(make):
    found = problems(
        make,
        "one: own_hooks.Typo",
        "two: own_hooks.Short",
        "three: {type: own_hooks.Writer, every: 2 epochs}",
        overrides=["default_hooks.timing=own_hooks.Typo"],
    )
    begins = [
        f"a.yaml:{BEGIN}: hooks.one: Typo.after_trian_iter: no such mount point. Did you mean",
        f"a.yaml:{BEGIN + 1}: hooks.two: Short.after_val_epoch has the signature (run), but",
        f"a.yaml:{BEGIN + 2}: hooks.three: Writer.every = '2 epochs' limits nothing",
        "command line: default_hooks.timing=own_hooks.Typo: default_hooks.timing: Typo.",
    ]
    assert all(one.startswith(begin) for one, begin in zip(found, begins, strict=True)), found


def test_what_is_wrong_between_hooks_is_reported_with_its_line(make):
    (early,) = problems(make, "r: own_hooks.Reader", "w: own_hooks.Writer")
    assert early.startswith(f"a.yaml:{BEGIN}: hooks.r: The hook 'r' reads 'size' at after_train_")
    (nothing,) = problems(make, "r: own_hooks.Reader")
    assert nothing.startswith(f"a.yaml:{BEGIN}: hooks.r: The hook 'r' watches 'size', which")
    (twice,) = problems(make, "w: own_hooks.Writer", "metrics: own_hooks.Writer")
    assert twice.startswith(f"a.yaml:{BEGIN + 1}: hooks.metrics: Two hooks are named 'metrics'")
    assert "default_hooks={'metrics': ...}" in twice


def test_a_mount_point_that_is_declared_twice_is_reported_with_its_line(make):
    (twice,) = problems(make, "{}", overrides=["setup.points=[after_x, after_x]"])
    assert twice.startswith(
        "command line: setup.points=[after_x, after_x]: setup.points: The mount point"
    )
