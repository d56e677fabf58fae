"""A dialect that comes in a package of its own, installed as anybody would install it."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "hookloop-knots"
version = "1.0"

[project.entry-points."hookloop.dialects"]
knots = "hookloop_knots.dialect:KNOTS"
broken = "hookloop_knots.missing:NOTHING"
"""

DIALECT = '''
from hookloop import Hook
from hookloop.dialects import Dialect


class Tie(Hook):
    """Calls a knot's only method after every epoch."""

    def __init__(self, knot):
        self.knot = knot
        self.name = type(knot).__name__

    def after_epoch(self, run):
        self.knot.tie(run.progress.epoch)


KNOTS = Dialect(
    name="knots",
    bases=(("hookloop_knots", "Knot"),),
    adapt=lambda knot: [Tie(knot)],
    catalogue=lambda: {"Bowline": "hookloop_knots.knots:Bowline"},
    packages={"knots": "hookloop_knots.knots"},
)
'''

KNOTS = """
class Knot:
    def tie(self, epoch): ...


class Bowline(Knot):
    def __init__(self, rope="hemp"):
        self.rope = rope

    def tie(self, epoch):
        print("bowline", self.rope, epoch)
"""

SCRIPT = """
from hookloop_knots.knots import Bowline
from tests.tiny import make_trainer

make_trainer(hooks=[Bowline("silk")], max_epochs=2).train()
"""

CONFIG = """
model: {type: torch.nn.Linear, in_features: 4, out_features: 1}
train_data: {type: "tests.tiny:make_data"}
loss: mse_loss
optimizer: {type: SGD, lr: 0.1}
max_epochs: 1
hooks: [{type: Bowline, rope: cotton}]
"""

ALIASED = "from knots import Bowline\nBowline().tie(7)\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A directory with the package installed in it."""
    source = tmp_path_factory.mktemp("source")
    (source / "pyproject.toml").write_text(PYPROJECT)
    package = source / "hookloop_knots"
    package.mkdir()
    for name, text in {"__init__": "", "dialect": DIALECT, "knots": KNOTS}.items():
        (package / f"{name}.py").write_text(text)
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", site, source], check=True)
    return site


def run(site, pytestconfig, *command):
    paths = [str(site), str(pytestconfig.rootpath), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_its_hooks_run_in_a_script(site, pytestconfig, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run(site, pytestconfig, "script.py")
    assert [line for line in done.stdout.splitlines() if line.startswith("bowline")] == [
        "bowline silk 1",
        "bowline silk 2",
    ]
    assert "The dialect 'broken' of hookloop-knots cannot be loaded" in done.stderr


def test_a_config_names_its_hooks(site, pytestconfig, tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert (
        "bowline cotton 1"
        in run(site, pytestconfig, "-m", "hookloop", "train", "config.yaml").stdout
    )


def test_its_packages_can_be_aliased(site, pytestconfig, tmp_path):
    (tmp_path / "script.py").write_text(ALIASED)
    done = run(site, pytestconfig, "-m", "hookloop", "run", "--alias", "knots", "script.py")
    assert done.stdout == "bowline hemp 7\n"
