"""Questions and answers."""

import pytest

from board_runs import client_of, write_run
from hookloop_board import events

ORIGIN = {"origin": "http://localhost:6060"}


@pytest.fixture
def client(tmp_path):
    write_run(tmp_path / "runs" / "a")
    page = tmp_path / "page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<title>hookloop board</title>")
    (page / "assets" / "x.js").write_text("1")
    (tmp_path / "secret.txt").write_text("SECRET")
    return client_of(tmp_path / "runs", page=page)


@pytest.fixture
def run(client):
    (one,) = client.get("/api/runs").json()["runs"]
    return one["id"]


def test_a_page_too_many_is_told_to_come_later(client, monkeypatch):
    monkeypatch.setattr(events, "MOST_PAGES", 0)
    assert client.get("/api/events").status_code == 503


def test_the_log_is_read_on_from_where_a_page_is(client, run, tmp_path):
    (tmp_path / "runs" / "a" / "run.log").write_text("one\ntwo\n")
    assert client.get(f"/api/runs/{run}/log?after=4").json()["text"] == "two\n"


def test_every_address_answers(client, run):
    for path in (
        "",
        "/config",
        "/environment",
        "/log",
        "/hooks",
        "/checkpoints",
        "/media",
        "/predictions",
    ):
        answer = client.get(f"/api/runs/{run}{path}")
        assert answer.status_code == 200, (path, answer.text)
        assert isinstance(answer.json(), dict)
    assert client.get("/api/sweeps").json() == {"sweeps": []}
    query = {"run": run, "metric": "train/loss"}
    assert len(client.get("/api/curves", params=query).json()["curves"]) == 1
    csv = client.get("/api/curves.csv", params=query)
    assert (
        csv.headers["content-type"].startswith("text/csv")
        and "attachment" in csv.headers["content-disposition"]
    )
    assert len(csv.text.splitlines()) == 11


def test_the_page_is_served_and_nothing_beside_it(client):
    assert "hookloop board" in client.get("/").text
    assert client.get("/assets/x.js").headers["content-type"].startswith("text/javascript")
    for path in (
        "/assets/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/",
        "//etc/passwd",
        "/assets/x.js%00",
    ):
        answer = client.get(path)
        assert answer.status_code == 404 and "SECRET" not in answer.text, path


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/nope",
        "/api/runs/..%2f..%2fetc",
        "/api/runs/nope/media/x",
        "/api/curves?run=nope&metric=a",
    ],
)
def test_what_is_not_there_is_a_404_with_a_sentence(client, path):
    answer = client.get(path)
    assert answer.status_code == 404 and answer.json()["error"].endswith(".")


@pytest.mark.parametrize("query", ["axis=up", "from=x", "points=many"])
def test_a_wrong_question_is_a_400(client, run, query):
    answer = client.get(f"/api/curves?run={run}&metric=train/loss&{query}")
    assert answer.status_code == 400 and "must be" in answer.json()["error"]
    assert client.get(f"/api/runs/{run}/log?before=x").status_code == 400


def test_a_change_must_be_json_of_limited_size(client, run):
    path = f"/api/runs/{run}/labels"
    plain = client.post(path, content="{}", headers={**ORIGIN, "content-type": "text/plain"})
    assert plain.status_code == 400
    assert client.post(path, json=[1], headers=ORIGIN).status_code == 400
    broken = client.post(path, content="{", headers={**ORIGIN, "content-type": "application/json"})
    assert broken.status_code == 400
    assert client.post(path, json={"note": "x" * 300_000}, headers=ORIGIN).status_code == 413
    assert client.get(path).status_code == 404  # No change by a link.


def test_labels_are_written(client, run):
    answer = client.post(
        f"/api/runs/{run}/labels", json={"tags": ["good"], "note": "<b>"}, headers=ORIGIN
    )
    assert answer.json() == {"tags": ["good"], "note": "<b>"}
    # At once: a page that is opened now would not be told of it any more.
    (listed,) = client.get("/api/runs").json()["runs"]
    assert (listed["tags"], listed["note"]) == (["good"], "<b>")


def test_a_run_that_is_not_running_rejects_a_request(client, run):
    answer = client.post(f"/api/runs/{run}/ask", json={"do": "stop"}, headers=ORIGIN)
    assert answer.status_code == 400 and "not running" in answer.json()["error"]
    wrong = client.post(f"/api/runs/{run}/ask", json={"do": "explode"}, headers=ORIGIN)
    assert wrong.status_code == 400


def test_numbers_that_json_lacks_are_text(tmp_path):
    write_run(tmp_path / "a", summary={"metrics": {"train/loss": "NaN"}})
    text = client_of(tmp_path).get("/api/runs").text
    assert '"train/loss": "NaN"' in text
