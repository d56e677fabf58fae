"""Hosts for trainings on several of them: processes of this machine, or network namespaces."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

LIMIT = 300.0
"""Seconds after which a launcher that has not ended hangs; none of its own limits is as long."""

PROJECT = """
import os, signal, time
from pathlib import Path
import torch
from hookloop import Hook


def data():
    inputs = torch.randn(48, 2, generator=torch.Generator().manual_seed(0))
    return torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))


class Disturb(Hook):
    '''In the first attempt: wait for a file, or kill a rank; alone, wait for others.'''

    ranks = "all"

    def __init__(self, wait_at=-1, kill_at=-1, alone_at=-1):
        self.wait_at, self.kill_at, self.alone_at = wait_at, kill_at, alone_at

    def after_update(self, run):
        if run.progress.iter == self.alone_at and run.world.is_alone:
            Path("is-alone").touch()
            while run._internals.requests.stop is None:
                time.sleep(0.02)
        if run.world.restart:
            return
        if run.progress.iter == self.kill_at and run.world.rank == run.world.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if run.progress.iter == self.wait_at:
            Path(f"waits-{run.world.rank}").touch()
            while not Path("continue").exists():
                time.sleep(0.02)
"""

CONFIG = """
seed: 0
max_epochs: 3
model: {type: torch.nn.Linear, in_features: 2, out_features: 1}
train_data:
  type: torch.utils.data.DataLoader
  dataset: {type: hosts_project.data}
  batch_size: 8
  shuffle: true
loss: mse_loss
optimizer: {type: SGD, lr: 0.1, momentum: 0.9}
parallel: {timeout: 100}
default_hooks: {console: null, checkpoint: {type: SaveCheckpoint, every: 5}}
hooks: {disturb: {type: hosts_project.Disturb}}
"""


@dataclass
class Launched:
    """A launcher that runs on a host."""

    process: subprocess.Popen[bytes]
    file: Path

    @property
    def text(self) -> str:
        """What it and its ranks have written so far."""
        return self.file.read_text()

    def end(self) -> int:
        """Wait for its end; return the exit code."""
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it hangs:\n{self.text}") from None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the launcher and its ranks, the launcher first."""
        for pid in (self.process.pid, *children(self.process.pid)):
            os.kill(pid, number)


@dataclass
class Hosts:
    """Some hosts, each of which runs a command by a prefix."""

    folder: Path
    place: str
    prefixes: tuple[tuple[str, ...], ...]
    cut: Callable[[], None] | None = None
    launched: list[Launched] = field(default_factory=list)

    def train(self, host: int, *options: str, ranks: int = 1, nodes: str = "2") -> Launched:
        """Start a launcher on a host."""
        file = self.folder / f"output-{len(self.launched)}"
        meeting = ("--nodes", nodes, "--rendezvous", self.place)
        command = (*COMMAND, "--run-dir", "run", "--ranks", str(ranks), *meeting, *options)
        with file.open("wb") as output:
            process = subprocess.Popen(
                (*self.prefixes[host], *command), cwd=self.folder, stdout=output, stderr=output
            )
        self.launched.append(Launched(process, file))
        return self.launched[-1]

    def alone(self, *options: str, ranks: int = 2) -> None:
        """Train on one host, to compare."""
        command = (*COMMAND, "--run-dir", "alone", "--ranks", str(ranks), *options)
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True, timeout=LIMIT)

    def until(self, is_done: Callable[[], bool]) -> None:
        """Wait for something that happens while the launchers run."""
        end = time.monotonic() + LIMIT
        while not is_done():
            texts = "\n".join(one.text for one in self.launched)
            assert time.monotonic() < end, texts
            time.sleep(0.05)

    def until_ranks_wait(self, number: int = 2) -> None:
        """Wait until the ranks are where the hook keeps them."""
        self.until(lambda: len(list(self.folder.glob("waits-*"))) == number)

    def let_continue(self) -> None:
        """Let the ranks continue from there."""
        (self.folder / "continue").touch()


COMMAND = (sys.executable, "-m", "hookloop", "train", "config.yaml")


@contextmanager
def several(folder: Path, place: str, *prefixes: tuple[str, ...]) -> Iterator[Hosts]:
    """Yield hosts with a project in a directory that all of them see."""
    (folder / "hosts_project.py").write_text(PROJECT)
    (folder / "config.yaml").write_text(CONFIG)
    hosts = Hosts(folder, place, prefixes)
    try:
        yield hosts
    finally:
        for one in hosts.launched:
            one.process.kill()  # Its ranks end with it.
            one.process.wait()


@contextmanager
def namespaces(folder: Path) -> Iterator[Hosts]:
    """Yield two hosts that are network namespaces with a link between them.

    Each has a name that leads to 127.0.1.1 on itself, as Debian sets it up, and none in DNS.
    """
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("network namespaces need root, and ip of iproute2")
    names = [f"hookloop-{os.getpid()}-{host}" for host in (0, 1)]
    links = [f"hl{os.getpid() % 10**8}-{host}" for host in (0, 1)]
    prefixes = []
    etc = [Path("/etc/netns") / name for name in names]
    try:
        for name in names:
            _ip("netns", "add", name)
        _ip("link", "add", links[0], "netns", names[0], "type", "veth", "peer", "name", links[1],
            "netns", names[1])  # fmt: skip
        for host, (name, link) in enumerate(zip(names, links, strict=True)):
            _ip("-n", name, "addr", "add", f"10.199.77.{host + 1}/24", "dev", link)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", link, "up")
            _ip("-n", name, "addr", "add", f"fd77::{host + 1}/64", "dev", link, "nodad")
            etc[host].mkdir(parents=True)
            others = "10.199.77.1 host0\n" if host else ""
            (etc[host] / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 host{host}\n{others}")
            own_name = ("unshare", "--uts", "sh", "-c", f'hostname host{host}; exec "$0" "$@"')
            prefixes.append(("ip", "netns", "exec", name, *own_name))
        with several(folder, "10.199.77.1:29500", *prefixes) as hosts:
            hosts.cut = lambda: _ip("-n", names[0], "link", "set", links[0], "down")
            yield hosts
    finally:
        for name, folder_of_etc in zip(names, etc, strict=True):
            subprocess.run(("ip", "netns", "delete", name), check=False)
            shutil.rmtree(folder_of_etc, ignore_errors=True)


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that these have started."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # It has ended meanwhile.
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        own = parents.get(waiting.pop(), [])
        found += own
        waiting += own
    return found
