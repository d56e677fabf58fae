"""Wheels of the engine and of what is beside it: built, installed one by one, and used."""

import os
import re
import subprocess
import sys
from importlib.metadata import files, requires
from pathlib import Path

import click
import pytest

from hookloop.version import VERSION

pytestmark = pytest.mark.slow  # Builds, and makes environments.

ROOT = Path(__file__).parents[2]

TRAIN = """
from hookloop.testing import tiny_trainer
hook = {hook}
trainer = tiny_trainer(hook, max_epochs=1)
print(trainer.train().status)
"""

SMOKE = {
    "hookloop-mmengine": (
        "from hookloop_mmengine.hooks import EMAHook\n" + TRAIN.format(hook="EMAHook()")
    ),
    "hookloop-dialects": (
        "from hookloop_dialects.imix import HookBase\n"
        "class Mine(HookBase):\n    def after_train_iter(self): pass\n"
        + TRAIN.format(hook="Mine()")
    ),
    "hookloop-callbacks": (
        "from hookloop import dialects\nwith dialects.alias('lightning'):\n"
        "    from lightning.pytorch import Callback\n"
        "class Mine(Callback):\n    def on_train_start(self, trainer, module): pass\n"
        + TRAIN.format(hook="Mine()")
    ),
}

# Of what an import does, what reaches out: files that are opened are those of Python's packages.
IMPORT = """
import sys, time
places = tuple(sys.path)
found = []
def watch(event, args):
    if event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.fork"):
        found.append(event)
    if event == "open" and not str(args[0]).startswith(places) and "python" not in str(args[0]):
        found.append(f"open {args[0]}")
sys.addaudithook(watch)
began = time.perf_counter()
import hookloop
took = time.perf_counter() - began
print(round(took * 1000), "torch" in sys.modules, *found, sep="|")
"""


def run(*command, cwd=ROOT):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment | {"OMP_NUM_THREADS": "1"},
        check=False, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needed():
    """The packages that the engine needs, with what each takes where it is installed."""
    names = [re.match(r"[\w-]+", one)[0] for one in requires("hookloop") if "extra ==" not in one]
    sizes = {
        name: sum(one.stat().st_size for part in files(name) if (one := part.locate()).is_file())
        for name in sorted(names)
    }
    return {name: f"{size / 1e6:.1f} MB" for name, size in sizes.items()}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheels by the name of the distribution; that of the board has a test of its own."""
    folder = tmp_path_factory.mktemp("wheels")
    for home in (ROOT, *(ROOT / "packages" / name for name in SMOKE)):
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=home)
    return {one.name.partition("-")[0].replace("_", "-"): one for one in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def environment(wheels, tmp_path_factory):
    """Make an environment of the named wheels; the other packages are those of this one."""

    def make(*names):
        home = tmp_path_factory.mktemp("clean")
        run(sys.executable, "-m", "venv", "--without-pip", home)
        python = home / "bin" / "python"
        run(
            sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
            "--no-index", *(wheels[name] for name in names),
        )  # fmt: skip
        (place,) = home.glob("lib/python*/site-packages")
        # Appended, so that the wheels come first; what is editable in there is not found.
        others = Path(click.__file__).parents[1]
        (place / "others.pth").write_text(f"{others}\n")
        return python

    return make


def test_the_engine_alone_trains_imports_little_and_names_the_others(environment, wheels, tmp_path):
    python = environment("hookloop")
    milliseconds, has_torch, *reached = run(python, "-c", IMPORT, cwd=tmp_path).strip().split("|")
    sizes = {name: f"{path.stat().st_size / 1e6:.2f} MB" for name, path in sorted(wheels.items())}
    print(f"\nwheels: {sizes}; import of hookloop: {milliseconds} ms; needs {needed()}")
    assert has_torch == "False" and not reached
    script = "from hookloop.hooks import StopAfter" + TRAIN.format(hook="StopAfter(epochs=9)")
    assert "completed" in run(python, "-c", script, cwd=tmp_path)


@pytest.mark.parametrize("name", SMOKE)
def test_each_beside_the_engine_trains(environment, name, tmp_path):
    python = environment("hookloop", name)
    assert run(python, "-c", SMOKE[name], cwd=tmp_path).strip().endswith("completed")


def test_all_together_are_found(environment, tmp_path):
    python = environment("hookloop", *SMOKE)
    listed = run(
        python, "-c", "from hookloop import dialects; print(*dialects.installed())", cwd=tmp_path
    )
    assert len(listed.split()) == 7


def test_the_wheels_have_the_version_of_the_engine(wheels):
    assert {one.name.split("-")[1] for one in wheels.values()} == {VERSION}
