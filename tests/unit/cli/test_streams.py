"""Output that cannot be written is lost without ending the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINT = """
import sys
from hookloop.cli.shared.streams import keep_streams, report_lost_output
keep_streams()
for number in range(3000):
    print("line", number)
report_lost_output()
{rest}
"""


def run(rest: str = "", **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", PRINT.format(rest=rest)],
        stderr=subprocess.PIPE,
        check=False,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.slow
def test_a_reader_that_goes_away_is_not_reported() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_reported_once_and_does_not_end_the_process(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = run("open('went_on', 'w')", stdout=full, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == b"error: the output could not be written: No space left on device\n"
    assert (tmp_path / "went_on").exists()


@pytest.mark.slow
def test_a_closed_stream_does_not_give_its_number_to_a_file(tmp_path: Path) -> None:
    rest = "sys.stdout.flush(); file = open('data', 'w'); assert file.fileno() > 2; print('no')"
    command = f"{sys.executable} -c '{PRINT.format(rest=rest).replace(chr(39), chr(34))}' >&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "data").read_bytes() == b""


@pytest.mark.slow
def test_what_can_be_written_arrives_whole() -> None:
    done = run(stdout=subprocess.PIPE)
    assert done.stdout.splitlines() == [b"line %d" % number for number in range(3000)]
