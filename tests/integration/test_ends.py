"""However a script ends, it ends within seconds and leaves no process behind."""

import os
import pty
import signal
import subprocess
import sys
import textwrap

import pytest
from tests import warm
from tests.names import iter_file

pytestmark = pytest.mark.slow

LIMIT = 100
"""Seconds for a whole script, most of which a busy machine needs to import torch."""

SCRIPT = """
import os, signal, sys
import torch
from torch.utils.data import DataLoader, TensorDataset
from hookloop import Hook, Trainer

class End(Hook):
    def after_train_iter(self, run):
        if run.progress.iter == 3:
            {ending}

    def after_run(self, run):
        {last}

persistent = {persistent}
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
model = torch.nn.Linear(4, 1)
trainer = Trainer(
    model,
    train_data=DataLoader(data, 4, num_workers=2, persistent_workers=persistent),
    val_data=DataLoader(data, 4, num_workers=1, persistent_workers=persistent),
    loss=torch.nn.functional.mse_loss,
    optimizer=torch.optim.SGD(model.parameters(), 0.1),
    max_epochs=2,
    hooks=[End()],
    run_dir={run_dir!r},
    device="cpu",
)
outcome = trainer.train()
print("last line", flush=True)
"""


def run_script(tmp_path, ending="pass", *, last="pass", persistent=True, python=sys.executable):
    """Run a script in a process group of its own; its output ends with its last process."""
    script = SCRIPT.format(ending=ending, last=last, persistent=persistent, run_dir=str(tmp_path))
    return subprocess.run(
        [python, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        start_new_session=True,
    )


FRESH = {"pass", "raise ValueError('no')", "sys.exit(3)", "os.killpg(0, signal.SIGTERM)"}


@pytest.mark.parametrize(
    ("ending", "code", "status", "persistent"),
    [
        ("pass", 0, "completed", True),
        ("raise ValueError('no')", 1, "failed", True),
        ("raise ValueError('no')", 1, "failed", False),
        ("sys.exit(3)", 3, "failed", True),
        ("sys.exit()", 0, "stopped", False),
        ("raise KeyboardInterrupt", -signal.SIGINT, "interrupted", True),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, "interrupted", True),
        ("os.killpg(0, signal.SIGTERM)", 143, "interrupted", True),
        ("os.killpg(0, signal.SIGTERM)", 143, "interrupted", False),
        ("os.killpg(0, signal.SIGINT)", 130, "interrupted", True),
        ("os.killpg(0, signal.SIGHUP)", 129, "interrupted", True),
        ("os.killpg(0, signal.SIGUSR1)", 138, "interrupted", False),
        ("os._exit(7)", 7, "running", True),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, "running", True),
    ],
)
def test_a_script_ends(tmp_path, ending, code, status, persistent):
    # How Python itself ends, with its workers, is tried once in each way: by itself, by an
    # exception and by a signal. The other scripts start at once.
    python = sys.executable if ending in FRESH and persistent else warm.python()
    done = run_script(tmp_path, ending, persistent=persistent, python=python)
    assert done.returncode == code, done.stderr
    assert f'"status": "{status}"' in (tmp_path / "summary.json").read_text()
    assert ("last line" in done.stdout) == (ending == "pass")
    if status == "interrupted" and code > 0:
        assert (tmp_path / iter_file(3)).exists()


def test_a_hook_that_exits_at_the_end_leaves_no_run_that_looks_alive(tmp_path):
    done = run_script(tmp_path, last="sys.exit(4)", python=warm.python())
    assert done.returncode == 4, done.stderr
    assert '"status": "completed"' in (tmp_path / "summary.json").read_text()


def test_a_script_whose_terminal_is_closed_saves_and_ends(tmp_path):
    script = SCRIPT.format(
        ending="print('now', flush=True); import time; time.sleep(3)",
        last="pass",
        persistent=True,
        run_dir=str(tmp_path),
    )
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-c", script])
    output = b""
    while b"now" not in output:
        output += os.read(terminal, 1000)
    os.close(terminal)  # From here on, nothing can be printed.
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 129
    assert '"status": "interrupted"' in (tmp_path / "summary.json").read_text()
    assert (tmp_path / iter_file(3)).exists()


CELL = """
import os, multiprocessing
import torch
from torch.utils.data import DataLoader, TensorDataset
from hookloop import Trainer
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
model = torch.nn.Linear(4, 1)
trainer = Trainer(
    model,
    train_data=DataLoader(data, 4, num_workers=1, persistent_workers=True),
    loss=torch.nn.functional.mse_loss,
    optimizer=torch.optim.SGD(model.parameters(), 0.1),
    max_epochs={epochs},
    run_dir={run_dir!r},
    device="cpu",
)
@trainer.on("after_train_iter")
def act(run):
    if run.progress.iter == 3:
        {ending}
"""


class Notebook:
    """The kernel of a notebook."""

    def __init__(self, folder):
        from jupyter_client.manager import start_new_kernel

        env = {**os.environ, "IPYTHONDIR": str(folder)}
        self.manager, self.client = start_new_kernel(startup_timeout=LIMIT, env=env, cwd=folder)

    def run(self, code):
        """Run a cell; return its reply and what it printed."""
        printed = []

        def take(message):
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        reply = self.client.execute_interactive(
            textwrap.dedent(code), timeout=LIMIT, output_hook=take
        )
        return reply["content"], "".join(printed)


@pytest.fixture
def notebook(tmp_path):
    kernel = Notebook(tmp_path)
    yield kernel
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel(now=True)


COUNT = "print(len(multiprocessing.active_children()))"


def test_cells_of_a_notebook_end_and_so_does_its_kernel(notebook, tmp_path):
    cell = CELL.format(epochs=2, run_dir=str(tmp_path / "whole"), ending="pass")
    assert (
        notebook.run(f"{cell}\nassert trainer.train().status == 'completed'")[0]["status"] == "ok"
    )
    assert notebook.run(COUNT)[1] == "0\n"

    cell = CELL.format(epochs=2, run_dir=str(tmp_path / "failed"), ending="raise ValueError")
    assert notebook.run(f"{cell}\ntrainer.train()")[0]["ename"] == "ValueError"
    assert notebook.run(COUNT)[1] == "0\n"

    # A click on "interrupt" is a SIGINT to the kernel and its children.
    interrupt = "os.killpg(0, 2)"
    cell = CELL.format(epochs=2, run_dir=str(tmp_path / "interrupted"), ending=interrupt)
    reply, _ = notebook.run(f"{cell}\ntrainer.train()")
    assert reply["ename"] == "Interrupted"
    assert (tmp_path / "interrupted" / iter_file(3)).exists()
    assert notebook.run(COUNT)[1] == "0\n"

    notebook.client.shutdown()
    assert notebook.manager.provisioner.process.wait(LIMIT) == 0


SPAWNING = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from hookloop import Trainer

data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
model = torch.nn.Linear(4, 1)
loader = DataLoader(data, 4, num_workers=1, multiprocessing_context="spawn")
Trainer(
    model,
    train_data=loader,
    loss=torch.nn.functional.mse_loss,
    optimizer=torch.optim.SGD(model.parameters(), 0.1),
    max_epochs=1,
    run_dir="run",
    device="cpu",
).train()
"""


def test_a_script_that_its_workers_import_must_guard_its_main_part(tmp_path):
    (tmp_path / "script.py").write_text(SPAWNING)
    done = subprocess.run(
        [sys.executable, "script.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "Put what trains under \"if __name__ == '__main__':\"" in done.stderr
    assert "is being trained in by" not in done.stderr
