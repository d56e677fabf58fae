"""A dialect in a package of its own, installed with pip."""

import os
import subprocess
import sys

import pytest
from tests import warm

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
odd = "hookloop_knots.knots:Bowline"
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

MISTAKEN = """
from hookloop import dialects
from hookloop.errors import HookError

assert dialects.installed()["knots"].catalogue() == {"Bowline": "hookloop_knots.knots:Bowline"}
try:
    dialects.alias("knotts")
except HookError as error:
    print(error)
"""

CONFIG = """
model: {type: torch.nn.Linear, in_features: 4, out_features: 1}
train_data: {type: "tests.tiny:make_data"}
loss: mse_loss
optimizer: {type: SGD, lr: 0.1}
max_epochs: 1
hooks: [{hook}]
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


@pytest.fixture
def run(site, pytestconfig, tmp_path):
    """Runs Python where the package is installed, in an empty directory."""
    paths = [str(site), str(pytestconfig.rootpath), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def start(*command, code=0):
        done = subprocess.run(
            [warm.python(), *command],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done

    return start


def knots_of(done):
    return [line for line in done.stdout.splitlines() if line.startswith("bowline")]


def test_pip_installed_the_package_and_its_entry_points(site):
    (metadata,) = site.glob("hookloop_knots-1.0.dist-info")
    assert "knots = hookloop_knots.dialect:KNOTS" in (metadata / "entry_points.txt").read_text()


def test_its_hooks_run_in_a_script(run, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert knots_of(run("script.py")) == ["bowline silk 1", "bowline silk 2"]


def test_a_broken_plug_in_is_reported_and_the_others_work(run, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run("script.py")
    assert "The dialect 'broken' of hookloop-knots cannot be loaded: ModuleNotFound" in done.stderr
    assert "The dialect 'odd' of hookloop-knots is ignored" in done.stderr
    assert done.stderr.count("'broken'") == 1
    assert knots_of(done)


def test_a_config_names_its_hooks_in_every_form(run, tmp_path):
    hooks = [
        "{type: Bowline, rope: cotton}",
        "{type: Bowline, dialect: knots, rope: silk}",
        "{type: knots.Bowline, rope: jute}",  # Leads to the package that stands in for 'knots'.
        "{type: 'hookloop_knots.knots:Bowline', rope: wire}",
    ]
    (tmp_path / "config.yaml").write_text(CONFIG.replace("{hook}", ", ".join(hooks)))
    done = run("-m", "hookloop", "train", "config.yaml")
    ropes = ("cotton", "silk", "jute", "wire")
    assert knots_of(done) == [f"bowline {rope} 1" for rope in ropes]


def test_a_wrong_argument_of_its_hook_is_rejected_before_the_training(run, tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG.replace("{hook}", "{type: Bowline, rop: silk}"))
    done = run("-m", "hookloop", "check", "config.yaml", code=2)
    assert "Did you mean 'rope'?" in done.stderr


def test_its_packages_can_be_aliased(run, tmp_path):
    (tmp_path / "script.py").write_text(ALIASED)
    done = run("-m", "hookloop", "run", "--alias", "knots", "script.py")
    assert done.stdout == "bowline hemp 7\n"
    assert "No module named 'knots'" in run("script.py", code=1).stderr


def test_its_name_is_among_those_that_a_message_suggests(run, tmp_path):
    (tmp_path / "script.py").write_text(MISTAKEN)
    assert "Did you mean 'knots'?" in run("script.py").stdout
