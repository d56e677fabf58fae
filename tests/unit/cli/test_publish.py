"""``hookloop publish``: weights, config and model card, in a directory or on a hub."""

import base64
import json
import os
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests import warm
from tests.unit.cli.conftest import Invoke


@pytest.fixture
def run(project: Path, invoke: Invoke) -> Path:
    changes = ["default_hooks.checkpoint.best=loss"]
    trained = invoke("train", "config.yaml", "--run-dir", "runs/one", *changes)
    assert trained.exit_code == 0, trained.output
    return project / "runs" / "one"


def test_a_directory_beside_the_run_is_the_default(run: Path, invoke: Invoke) -> None:
    result = invoke("publish", "runs/one", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["to"] == "runs/one/published" and told["kind"] == "best"
    sizes = {path.name: path.stat().st_size for path in (run / "published").iterdir()}
    assert sizes == told["files"]
    assert "import_path" not in (run / "published" / "config.yaml").read_text()
    again = invoke("publish", "runs/one")
    assert again.exit_code == 2 and "has model.safetensors" in again.stderr
    assert invoke("publish", "runs/one", "--overwrite").exit_code == 0


def test_a_dry_run_writes_nothing(run: Path, invoke: Invoke) -> None:
    result = invoke("publish", "runs/one", "--to", "hf://me/net", "--dry-run", "--no-card")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("hf://me/net would get model.safetensors (")
    assert "README.md" not in result.stdout and "(best, iteration" in result.stdout


def test_nothing_of_the_run_is_imported(run: Path, invoke: Invoke, project: Path) -> None:
    (project / "cli_project.py").write_text("raise SystemExit('imported')")
    sys.modules.pop("cli_project")
    result = invoke("publish", "runs/one", "--format", "pth", "--checkpoint", "last")
    assert result.exit_code == 0, result.output
    assert (run / "published" / "model.pth").is_file()


class Hub(BaseHTTPRequestHandler):
    """The part of the hub's HTTP API that creating a repository and a commit use."""

    received: dict[str, bytes]
    tokens: set[str]

    def log_message(self, *arguments: object) -> None:
        pass

    def reply(self, answer: object) -> None:
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.reply({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.tokens.add(str(self.headers.get("Authorization")))
        home = f"http://{self.headers['Host']}/me/net"
        if self.path.endswith("/repos/create"):
            self.reply({"url": home})
        elif "/preupload/" in self.path:
            files = [file["path"] for file in json.loads(body)["files"]]
            self.reply({"files": [_regular(path) for path in files]})
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    value = line["value"]
                    self.received[value["path"]] = base64.b64decode(value["content"])
            self.reply({"commitUrl": f"{home}/commit/{'1' * 40}", "commitOid": "1" * 40})
        else:
            self.reply({"errors": [], "warnings": []})


def _regular(path: str) -> dict[str, object]:
    return {"path": path, "uploadMode": "regular", "shouldIgnore": False}


@pytest.fixture
def hub() -> Iterator[ThreadingHTTPServer]:
    Hub.received, Hub.tokens = {}, set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_repository_of_the_hub_gets_the_files(
    run: Path, hub: ThreadingHTTPServer, project: Path
) -> None:
    environment = os.environ | {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_TOKEN": "hf_of_the_environment",
        "HF_HOME": str(project / "hf"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    done = warm.run("publish", "runs/one", "--to", "hf://me/net", env=environment)
    assert done.returncode == 0, done.stderr
    assert f"127.0.0.1:{hub.server_port}/me/net has model.safetensors" in done.stdout
    assert set(Hub.received) == {"README.md", "config.yaml", "model.safetensors"}
    assert Hub.received["README.md"].startswith(b"---\nlibrary_name: hookloop\n")
    assert "Bearer hf_of_the_environment" in Hub.tokens
