import json
import os
from pathlib import Path

from hookloop.runs import environment
from hookloop.runs.environment import (
    MOST_STARTS,
    command_line,
    compare,
    describe_process,
    packages,
    read_starts,
    summarize,
    variables,
    write_starts,
)
from hookloop.secret import Secret


def test_a_process_is_described_in_plain_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = describe_process(tmp_path / "runs" / "a")
    assert json.loads(json.dumps(found)) == found
    assert found["directory"] == "../.."
    assert found["packages"]["torch"]
    assert str(Path.home()) not in json.dumps(found["command"])


def test_a_run_elsewhere_does_not_name_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    assert describe_process(tmp_path / "elsewhere")["directory"] is None


def test_secrets_of_the_command_line_are_hidden():
    Secret("s3cr3t-token", "${secret:TOKEN}")
    shown = command_line(
        [
            "python",
            "train.py",
            "--password",
            "abc",
            "--wandb-api-key=abc",
            "hooks.x.token=abc",
            "store=sftp://me:abc@host/runs",
            "note=s3cr3t-token",
            "monkey=1",
            "--keys",
            "3",
        ]
    )
    assert "abc" not in " ".join(shown)
    assert "s3cr3t-token" not in " ".join(shown)
    assert shown[-3:] == ["monkey=1", "--keys", "3"]
    assert "hooks.x.token=***" in shown


def test_variables_are_chosen_by_their_names_and_values():
    given = {
        "OMP_NUM_THREADS": "2",
        "SLURM_JOB_ID": "7",
        "TORCH_HUB_TOKEN": "abc",
        "NCCL_SOCKET": "http://me:pass@proxy",
        "HOOKLOOP_X": "AKIA0123456789ABCDEFGHIJKLMN",
        "CUDA_HOME": f"{Path.home()}/cuda",
        "USER": "me",
        "PATH": "/bin",
    }
    home = "~/cuda" if len(str(Path.home())) > 1 else "/cuda"
    assert variables(given) == {"CUDA_HOME": home, "OMP_NUM_THREADS": "2", "SLURM_JOB_ID": "7"}


def test_packages_are_those_that_would_be_imported(tmp_path):
    for folder, version in (("first", "2.0"), ("second", "1.0")):
        (tmp_path / folder / f"My_Package-{version}.dist-info").mkdir(parents=True)
    found = packages((str(tmp_path / "first"), str(tmp_path / "second"), str(tmp_path / "none")))
    assert found == (("my-package", "2.0"),)


def test_what_differs_is_listed_in_the_order_of_its_weight():
    old = {
        "python": "3.11.1",
        "torch": {"version": "2.5", "cuda": None},
        "git": {"commit": "a1", "dirty": False},
        "gpus": ["A100", "A100"],
        "packages": {"numpy": "1.0", "torch": "2.5", "gone": "1"},
        "variables": {"OMP_NUM_THREADS": "1", "SLURM_JOB_ID": "1"},
        "host": "one",
        "command": ["a"],
    }
    new = {
        "python": "3.11.1",
        "torch": {"version": "2.6", "cuda": "12.4"},
        "git": {"commit": "b2", "dirty": True},
        "gpus": ["H100"],
        "packages": {"numpy": "2.0", "torch": "2.6"},
        "variables": {"OMP_NUM_THREADS": "2", "SLURM_JOB_ID": "2"},
        "host": "two",
        "command": ["b"],
    }
    assert compare(old, new) == [
        "torch version: 2.5 -> 2.6",
        "torch cuda: nothing -> 12.4",
        "git commit: a1 -> b2",
        "git dirty: False -> True",
        "gpus: A100, A100 -> H100",
        "numpy: 1.0 -> 2.0",
        "gone: 1 -> nothing",
        "OMP_NUM_THREADS: 1 -> 2",
    ]
    assert compare(new, new) == []


def test_a_line_of_differences_has_a_limited_length():
    line = summarize([f"package{n}: {'1' * 500} -> 2" for n in range(40)])
    assert len(line) < 1200
    assert line.endswith("and 32 more")


def test_only_the_first_and_the_last_starts_are_kept(tmp_path):
    write_starts(tmp_path, [{"iter": number} for number in range(MOST_STARTS + 10)])
    kept = [one["iter"] for one in read_starts(tmp_path)]
    assert len(kept) == MOST_STARTS
    assert (kept[0], kept[1], kept[-1]) == (0, 11, MOST_STARTS + 9)


def test_a_file_of_somebody_else_may_hold_anything(tmp_path):
    file = tmp_path / environment.FILE
    for text in ("", "[1, 2]", '{"starts": 3}', '{"starts": [1, "x"]}', "[" * 100_000):
        file.write_text(text)
        assert read_starts(tmp_path) == []
    file.unlink()
    assert read_starts(tmp_path) == []
    os.mkfifo(file)
    assert read_starts(tmp_path) == []


def test_terminal_codes_in_a_file_are_made_safe():
    (line,) = compare({"python": "\x1b[2J"}, {"python": "3"})
    assert "\x1b" not in line
