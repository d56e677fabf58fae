"""``hookloop board``."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import click
import pytest
from click.testing import CliRunner

from board_runs import write_run
from hookloop.cli.main import cli
from hookloop_board import page as module


@pytest.fixture
def page(tmp_path, monkeypatch):
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text(
        '<head></head><body></body><script src="./a.js"></script></body>'
    )
    (page / "a.js").write_text("1")
    monkeypatch.setattr(module, "PAGE", page)
    monkeypatch.setattr(module.built_page, "__defaults__", (page, page))
    return page


def run(*arguments):
    return CliRunner().invoke(cli, ["board", *map(str, arguments)])


def test_runs_are_exported(tmp_path, page):
    write_run(tmp_path / "runs" / "a")
    done = run(tmp_path / "runs", "--export", tmp_path / "x.html")
    assert done.exit_code == 0 and "1 run," in done.output
    done = run(tmp_path / "runs", "--export", tmp_path / "x.html", "--json")
    assert json.loads(done.stdout)["runs"] == 1
    assert "board-data" in (tmp_path / "x.html").read_text()


def test_a_directory_that_is_not_there_is_rejected(tmp_path, page):
    done = run(tmp_path / "nope")
    assert done.exit_code == 2 and "there is no directory" in str(done.exception) + done.output


@pytest.mark.parametrize("token", ["short", "with-ü-in-it"])
def test_a_weak_token_is_rejected(tmp_path, page, token):
    done = run(tmp_path, "--token", token, "--port", 0)
    assert done.exit_code == 2 and "at least 8 characters" in done.output


def test_its_options_are_those_that_the_docs_name():
    command = cli.get_command(click.Context(cli), "board")
    options = {name for one in command.params for name in one.opts if name.startswith("--")}
    ours = {"--export", "--host", "--open", "--port", "--token", "--traceback"}
    assert options - {"--json", "--quiet"} == ours
    examples = [line for line in command.epilog.splitlines() if "hookloop" in line]
    assert examples
    for line in examples:
        assert {word for word in line.split() if word.startswith("--")} <= options


def test_neither_the_command_nor_the_server_imports_torch():
    code = (
        "import sys, hookloop_board.command, hookloop_board.serve, hookloop_board.export;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def start(tmp_path, page, *arguments, **environment):
    """The command as a process of its own, and the address that it tells."""
    code = (
        "import sys; from pathlib import Path; from hookloop_board import page;"
        "page.built_page.__defaults__ = (Path(sys.argv.pop(1)),) * 2;"
        "from hookloop.cli.main import main; main()"
    )
    import os

    process = subprocess.Popen(
        [sys.executable, "-c", code, str(page), "board", "--port", "0", *arguments],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, **environment},
    )  # fmt: skip
    lines = [process.stdout.readline()]
    while "http://" not in lines[-1]:
        assert lines[-1], "it has ended"
        lines.append(process.stdout.readline())
    return process, lines[-1].split()[4], lines


@pytest.mark.slow
def test_it_serves_until_it_is_interrupted_and_knows_ssh(tmp_path, page):
    process, address, lines = start(tmp_path, page, SSH_CONNECTION="a 1 b 2")
    try:
        assert "There is no 'runs' yet" in lines[0] and address.startswith("http://localhost:")
        assert "ssh -L" in process.stdout.readline()
        assert json.load(urllib.request.urlopen(f"{address}api/runs"))["runs"] == []
        write_run(tmp_path / "runs" / "a")
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        process.stdout.close()


@pytest.mark.slow
def test_elsewhere_it_makes_a_token(tmp_path, page):
    write_run(tmp_path / "runs" / "a")
    process, address, _ = start(tmp_path, page, "--host", "0.0.0.0")
    try:
        token = address.partition("?token=")[2]
        local = f"http://127.0.0.1:{address.split(':')[2].split('/')[0]}/"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{local}api/runs")
        request = urllib.request.Request(
            f"{local}api/runs", headers={"Authorization": f"Bearer {token}"}
        )
        assert len(json.load(urllib.request.urlopen(request))["runs"]) == 1
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()
