"""What Linux has and other systems lack is not needed: modules, signals, flushing a directory."""

import json
import subprocess
import sys

import pytest
from tests.names import epoch_file

# Windows has none of these modules and signals, opens no directory, flushes no file that is open
# for reading only, and has links for some users only.
OTHER_SYSTEM = r"""
import errno, json, os, signal, sys
import torch, torch.multiprocessing, torch.utils.data  # These may use what the system has.

for name in ("resource", "fcntl", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU"):
    delattr(signal, name)
    signal.Signals._member_map_.pop(name, None)
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY"):
    delattr(os, name)
really_open, really_sync = os.open, os.fsync

def open_file(path, flags, *args, **named):
    if not isinstance(path, int) and os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    number = really_open(path, flags, *args, **named)
    readers.discard(number)
    if flags & 3 == os.O_RDONLY:
        readers.add(number)
    return number

def sync(number):
    if number in readers:
        raise OSError(errno.EBADF, "Bad file descriptor")
    really_sync(number)

def link(*args, **named):
    raise OSError(errno.EPERM, "A required privilege is not held by the client")

readers = set()
os.open, os.fsync, os.link, os.symlink = open_file, sync, link, link

from hookloop.hooks import *
from hookloop.hooks.showing._wording import format_peak_memory
from hookloop.parallel.memory import host_memory
from hookloop.testing import tiny_trainer

def train(**options):
    hooks = [LogMemory(), LogMetrics(every=1, console=False), WriteCSV(), ExportModel(),
             PublishCheckpoint(), SnapshotSource(patterns=["*.py"])]
    defaults = {"console": None, "checkpoint": SaveCheckpoint(best="val/loss", keep=2)}
    trainer = tiny_trainer(*hooks, default_hooks=defaults, run_dir="run", **options)
    outcome = trainer.train()
    return outcome.status, outcome.problem, trainer.run.progress.iter, list(outcome.disabled)

print(json.dumps([train(max_epochs=2), train(max_epochs=4, resume=True)]))
assert format_peak_memory(torch.device("cpu")) == "?"
assert host_memory()
"""


@pytest.mark.slow
def test_a_run_needs_nothing_that_windows_lacks(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", OTHER_SYSTEM], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout.splitlines()[-1])
    assert first == ["completed", None, 6, []]
    assert second == ["completed", None, 12, []]
    files = {path.name for path in (tmp_path / "run").iterdir()}
    assert {epoch_file(3), epoch_file(4), "last_checkpoint", "checkpoints.json"} <= files
    assert any(name.startswith("best_loss") for name in files)
    assert not [name for name in files if ".tmp" in name or "staged" in name]
