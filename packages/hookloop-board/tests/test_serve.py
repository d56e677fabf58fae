"""Listen on a port, and end at once."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from board_runs import write_run
from hookloop.errors import HookloopError
from hookloop_board.serve import address_of, listen, new_token

SERVER = """
import sys
from pathlib import Path
from hookloop_board.access import Access
from hookloop_board.serve import listen, serve
socket = listen("127.0.0.1", 0)
port = socket.getsockname()[1]
serve([Path(sys.argv[1])], None, socket, Access("127.0.0.1", port), lambda: print(port, flush=True))
print("ended", flush=True)
"""


def test_a_taken_port_is_an_error_and_without_one_the_next_is_taken():
    with listen("127.0.0.1", 0) as first:
        taken = first.getsockname()[1]
        with pytest.raises(HookloopError, match=f"Port {taken} is taken"):
            listen("127.0.0.1", taken)
    with listen("127.0.0.1", None) as one, listen("127.0.0.1", None) as other:
        assert one.getsockname()[1] != other.getsockname()[1]


def test_a_host_of_another_machine_is_rejected():
    with pytest.raises(HookloopError, match="cannot listen on '203.0.113.7'"):
        listen("203.0.113.7", 0)


def test_the_address_is_one_to_open():
    assert address_of("::1", 1, None) == "http://[::1]:1/"
    assert address_of("0.0.0.0", 1, "t") == f"http://{socket.gethostname()}:1/?token=t"
    assert address_of("10.0.0.1", 1, None) == "http://10.0.0.1:1/"
    assert len(new_token()) >= 32 and new_token() != new_token()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once_with_open_streams(tmp_path, number):
    write_run(tmp_path / "a")
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        port = int(server.stdout.readline())
        streams = [
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/events", timeout=60)
            for _ in range(3)
        ]
        assert streams[0].readline().startswith(b"retry")
        server.send_signal(number)
        server.wait(60)  # With streams that are open it would wait for ever.
        for stream in streams:
            stream.close()
        with socket.socket() as probe, pytest.raises(OSError, match="refused"):
            probe.connect(("127.0.0.1", port))
    finally:
        server.kill()
        server.stdout.close()
        server.wait()
