import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tests.tiny import make_classifier, make_trainer

from hookloop.config.build import build
from hookloop.config.load import load
from hookloop.errors import HookError
from hookloop.hooks import LogMetrics, Notify, StopAfter, WriteMetrics
from hookloop.secret import redact

TOKEN = "t0ken-of-the-webhook-1234567"


class Service(HTTPServer):
    """A service on this host that keeps what it is sent."""

    def __init__(self, status=200):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.got, self.wait = status, [], threading.Event()
        self.wait.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/services/{TOKEN}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        self.server.wait.wait(30)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


@pytest.fixture
def service(request):
    server = Service(getattr(request, "param", 200))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.wait.set()
    server.shutdown()
    server.server_close()


def train(hook, tmp_path, *hooks, **options):
    hooks = [hook, LogMetrics(), WriteMetrics(), *hooks]
    return make_classifier(hooks=hooks, run_dir=tmp_path / "digits", **options)


def test_a_completed_run_is_reported_once(service, tmp_path):
    trainer = train(Notify(service.url), tmp_path)
    assert not trainer.train().disabled
    trainer.test()
    ((path, content),) = service.got
    assert path == f"/services/{TOKEN}"
    assert content["status"] == "completed" and content["iter"] == 3
    assert content["text"] == content["content"]
    assert content["text"].startswith("digits on ") and "val/accuracy" in content["text"]


def test_stopped_and_failed_runs_say_why(service, tmp_path):
    train(Notify(service.url), tmp_path / "a", StopAfter(iterations=1), max_epochs=9).train()

    def step(run, batch):
        raise ValueError(f"cannot reach {service.url}")

    hook = Notify(service.url, template="{status}: {reason}")
    with pytest.raises(ValueError, match="cannot reach"):
        make_trainer(step=step, hooks=[hook], run_dir=tmp_path / "b").train()
    texts = [content["text"] for _, content in service.got]
    assert "stopped (" in texts[0]
    assert texts[1].startswith("failed: ValueError") and TOKEN not in texts[1]


def test_other_ends_are_not_reported(service, tmp_path):
    train(Notify(service.url, on=["failed"]), tmp_path).train()
    assert not service.got


@pytest.mark.parametrize("service", [403], indirect=True)
def test_a_service_that_rejects_it_does_not_fail_the_run(service, tmp_path, caplog):
    outcome = train(Notify(service.url), tmp_path).train()
    assert outcome.status == "completed"
    assert [one.hook for one in outcome.disabled] == ["notify"]
    assert "HTTP Error 403" in caplog.text
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert TOKEN not in caplog.text and TOKEN.encode() not in written


def test_a_service_that_hangs_is_left_after_the_time_limit(service, tmp_path, caplog):
    service.wait.clear()
    outcome = train(Notify(service.url, timeout=0.1), tmp_path).train()
    assert outcome.status == "completed" and outcome.disabled
    assert "not sent" in caplog.text


def test_nobody_listens(tmp_path, caplog):
    server = Service()
    url = server.url
    server.server_close()
    assert train(Notify(url), tmp_path).train().disabled
    assert "Connection refused" in caplog.text


@pytest.mark.slow
def test_apprise_sends_to_its_services(service, tmp_path):
    pytest.importorskip("apprise")
    url = service.url.replace("http:", "json:")
    outcome = train(Notify([url, service.url], template="{name} is {status}"), tmp_path).train()
    assert not outcome.disabled
    by_apprise = next(content for _, content in service.got if "message" in content)
    assert by_apprise["message"] == "digits is completed"
    assert len(service.got) == 2


def test_a_service_of_apprise_that_fails_is_reported(tmp_path, caplog):
    pytest.importorskip("apprise")
    server = Service()
    url = server.url.replace("http:", "json:")
    server.server_close()
    assert train(Notify(url), tmp_path).train().disabled
    assert TOKEN not in caplog.text


def test_the_address_is_in_no_file_even_if_a_config_shows_it(service, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        f"""
model: {{type: torch.nn.Linear, in_features: 4, out_features: 1}}
train_data: {{type: tests.tiny.make_data}}
loss: torch.nn.functional.mse_loss
optimizer: {{type: SGD, lr: 0.1}}
max_epochs: 1
hooks:
  - {{type: Notify, url: "{service.url}"}}
"""
    )
    trainer = build(load(config), run_dir=tmp_path / "run")
    trainer.train()
    assert len(service.got) == 1
    written = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    assert written
    assert not [path for path, content in written.items() if TOKEN.encode() in content]
    assert b"secret:NOTIFY_URL" in written[tmp_path / "run" / "config.yaml"]


def test_the_address_is_hidden_in_messages():
    Notify(f"https://host.example/{TOKEN}")
    assert redact(f"404 for /{TOKEN}") == "404 for /<hidden>"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": []}, "at least one url"),
        ({"url": "https:///path"}, "has no host"),
        ({"url": "no-service-of-this-name://x"}, "neither"),
        ({"on": ["fail"]}, "Did you mean 'failed'"),
        ({"template": "{nmae}"}, "Did you mean 'name'"),
        ({"template": "{"}, "cannot be filled in"),
        ({"timeout": 0.0}, "must be positive"),
    ],
)
def test_wrong_arguments_are_rejected(options, words):
    with pytest.raises(HookError, match=words):
        Notify(**({"url": "https://example.org/hook"} | options))
