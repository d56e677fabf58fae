"""Who may use the board."""

import pytest

from board_runs import client_of, write_run
from hookloop_board.access import HEADERS, Access, is_loopback

TOKEN = "a-secret-of-the-tests"


@pytest.mark.parametrize(
    ("host", "header", "accepted"),
    [
        ("127.0.0.1", "localhost:9000", True),
        ("127.0.0.1", "127.0.0.1:6060", True),
        ("127.0.0.1", "[::1]:6060", True),
        ("127.0.0.1", "LOCALHOST.", True),
        ("127.0.0.1", "evil.example:6060", False),
        ("127.0.0.1", "10.0.0.5:6060", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "localhost:80@evil.example", False),
        ("0.0.0.0", "10.0.0.5:6060", True),
        ("0.0.0.0", "evil.example", False),
        ("node7.cluster", "node7.cluster:6060", True),
        ("node7.cluster", "node8.cluster:6060", False),
    ],
)
def test_a_host_name_that_only_leads_here_by_dns_is_rejected(host, header, accepted):
    assert Access(host, 6060).accepts_host(header) is accepted


def test_loopback_is_known_by_its_addresses():
    assert is_loopback("127.0.0.53") and is_loopback("::1") and is_loopback("localhost")
    assert not is_loopback("192.168.0.1") and not is_loopback("localhost.example")


def test_a_foreign_host_gets_nothing(tmp_path):
    write_run(tmp_path / "a")
    answer = client_of(tmp_path, name="evil.example").get("/api/runs")
    assert answer.status_code == 403 and "runs" not in answer.json()


def test_every_answer_has_the_headers(tmp_path):
    client = client_of(tmp_path)
    for path in ("/api/runs", "/nothing", "/api/runs/x"):
        headers = client.get(path).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert "access-control-allow-origin" not in headers


def test_without_a_token_loopback_reads(tmp_path):
    assert client_of(tmp_path).get("/api/runs").status_code == 200


@pytest.mark.parametrize(
    "header", [None, "Bearer wrong", f"Bearer {TOKEN}x", TOKEN, "Bearer ", "Bearer ü"]
)
def test_a_wrong_token_is_rejected_everywhere(tmp_path, header):
    client = client_of(tmp_path, token=TOKEN)
    headers = {"authorization": header.encode()} if header else {}
    for path in ("/", "/api/runs", "/api/events", "/assets/x.js", "/api/curves.csv"):
        assert client.get(path, headers=headers).status_code == 401
    assert client.post("/api/runs/x/ask", headers=headers, json={}).status_code == 401
    assert client.get("/?token=wrong").status_code == 401


def test_the_token_in_the_address_becomes_a_cookie(tmp_path):
    client = client_of(tmp_path, token=TOKEN)
    answer = client.get(f"/?token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 303 and TOKEN not in answer.headers["location"]
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.get("/api/runs").status_code == 200
    client.cookies.clear()
    assert client.get("/api/runs").status_code == 401
    right = {"authorization": f"Bearer {TOKEN}"}
    assert client.get("/api/runs", headers=right).status_code == 200


@pytest.mark.parametrize("token", [TOKEN, 'odd; "token"=ü'])
def test_cookies_of_other_servers_do_not_hide_the_token(tmp_path, token):
    client = client_of(tmp_path, token=token)
    answer = client.get("/", params={"token": token}, follow_redirects=False)
    own = answer.headers["set-cookie"].partition(";")[0]
    client.cookies.clear()
    for others in ('theme={"a": [1, 2]}', "_xsrf=2|ab,c; x", "=; ;;"):
        headers = {"cookie": f"{others}; {own}; last=1"}
        assert client.get("/api/runs", headers=headers).status_code == 200
        assert client.get("/api/runs", headers={"cookie": others}).status_code == 401


def test_a_token_in_the_address_of_the_answers_does_not_count(tmp_path):
    assert client_of(tmp_path, token=TOKEN).get(f"/api/runs?token={TOKEN}").status_code == 401


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", "http://localhost:1", "http://localhost:6060.evil"],
)
def test_a_change_needs_the_boards_own_origin(tmp_path, origin):
    path = write_run(tmp_path / "a")
    client = client_of(tmp_path)
    (run,) = client.get("/api/runs").json()["runs"]
    headers = {"origin": origin} if origin else {}
    for place in ("ask", "labels", "checkpoints/verify"):
        answer = client.post(
            f"/api/runs/{run['id']}/{place}", json={"tags": ["x"]}, headers=headers
        )
        assert answer.status_code == 403
    assert not (path / "tags.json").exists()


def test_a_request_from_another_site_gets_no_answer(tmp_path):
    headers = {"sec-fetch-site": "cross-site"}
    assert client_of(tmp_path).get("/api/runs", headers=headers).status_code == 403
    assert (
        client_of(tmp_path).get("/api/runs", headers={"sec-fetch-site": "same-origin"}).is_success
    )


def test_the_token_is_not_shown_by_accident():
    assert TOKEN not in repr(Access("0.0.0.0", 1, TOKEN))
