"""Where a run was made: ``environment.json``, which has an entry for each start of the training.

An entry holds plain values: ``iter`` and ``time`` of the start, ``command``, ``directory``,
``host``, ``python``, ``packages``, ``torch``, ``gpus``, ``driver``, ``cpu``, ``git`` and
``variables``. Reading and comparing needs no torch.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from hookloop.runs.files import write_bytes
from hookloop.runs.reading import read_json
from hookloop.runs.records import to_json
from hookloop.runs.shown import make_safe
from hookloop.secret import redact, without_credentials
from hookloop.version import VERSION

FILE = "environment.json"

MOST_STARTS = 50
"""How many starts are kept: the first one and the last ones."""

VARIABLES = re.compile(
    r"(CUDA|CUBLAS|CUDNN|NVIDIA|OMP|MKL|OPENBLAS|KMP|TORCH|PYTORCH|NCCL|GLOO|UCX|SLURM|HIP|ROCM|"
    r"ROCR|HSA|XLA|TRITON|ATEN|HOOKLOOP)_\w+|WORLD_SIZE|LOCAL_WORLD_SIZE|PYTHONHASHSEED"
)
"""Variables that change how a training computes, or say where it was started."""

OF_PLACE = re.compile(
    r"SLURM_.*|HOOKLOOP_.*|CUDA_VISIBLE_DEVICES|CUBLAS_WORKSPACE_CONFIG|"
    r".*(PORT|ADDR|HOST|NODE|JOB|FILE|DIR|PATH).*"
)
"""Variables that differ at every start, or that a run sets itself: kept, and not compared."""

SECRET = re.compile(
    r"(?:^|[^a-z])(?:token|secret|passw(?:or)?d|pwd|auth|credentials?|api_?key|access_?key|key)"
    r"(?:$|[^a-z])",
    re.IGNORECASE,
)
"""Names whose values are never kept."""

HIDDEN = "***"


def describe_process(run_dir: Path) -> dict[str, object]:
    """Return what is known of this process without torch; it names no user.

    Args:
        run_dir: The run's directory, to which the working directory is given.
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(sys.orig_argv),
        "directory": _relative(Path.cwd(), run_dir),
        "host": socket.gethostname(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "hookloop": VERSION,
        "packages": dict(packages(tuple(sys.path))),
        "cpu": {"model": _cpu_model(), "count": os.cpu_count()},
        "variables": variables(os.environ),
    }


def command_line(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which secrets are hidden and the home directory is ``~``.

    >>> command_line(["python", "train.py", "--api-key", "abc", "token=abc", "lr=0.1"])
    ['python', 'train.py', '--api-key', '***', 'token=***', 'lr=0.1']
    """
    shown: list[str] = []
    hides_next = False
    for text in arguments:
        name, sign, _ = text.partition("=")
        is_secret = bool(SECRET.search(name)) and len(name) < 60
        if hides_next and not text.startswith("-"):
            shown.append(HIDDEN)
        elif sign and is_secret:
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(_without_home(without_credentials(text)))
        hides_next = not sign and is_secret and text.startswith("-")
    return shown


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that concern the training, without those that may be secret.

    >>> variables({"OMP_NUM_THREADS": "4", "NCCL_AUTH_TOKEN": "abc", "PATH": "/bin"})
    {'OMP_NUM_THREADS': '4'}
    """
    return {
        name: _without_home(redact(value))
        for name, value in sorted(environment.items())
        if VARIABLES.fullmatch(name) and not SECRET.search(name) and not _looks_secret(value)
    }


@lru_cache(maxsize=4)
def packages(search_path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the installed packages with their versions, by the names of their directories.

    ``importlib.metadata`` opens a file for each of them, which takes longer than the start of a
    small training.
    """
    found: dict[str, str] = {}
    for folder in search_path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # An archive, or a directory that is not there.
            continue
        for entry in names:
            stem, _, kind = entry.rpartition(".")
            name, _, version = stem.partition("-")
            if kind == "dist-info" and version:  # The first one is the one that is imported.
                found.setdefault(name.lower().replace("_", "-"), version)
    return tuple(sorted(found.items()))


def read_starts(run_dir: Path) -> list[dict[str, object]]:
    """Return the starts of a run, the oldest first; empty if nothing was written or is readable."""
    try:
        kept = read_json(run_dir / FILE)
    except (OSError, ValueError):
        return []
    starts = kept.get("starts") if isinstance(kept, dict) else None
    return [one for one in starts if isinstance(one, dict)] if isinstance(starts, list) else []


def write_starts(run_dir: Path, starts: Sequence[Mapping[str, object]]) -> None:
    """Write the starts of a run."""
    kept = [*starts[:1], *starts[1:][-(MOST_STARTS - 1) :]]
    data = (to_json({"starts": kept}, indent=1) + "\n").encode()
    write_bytes(run_dir / FILE, data, durable=False)  # Waiting for the disk takes longer than all.


def compare(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """List what differs between two starts and may change a training, as ``what: old -> new``.

    >>> compare({"python": "3.11.4", "packages": {"a": "1"}}, {"python": "3.12.1", "packages": {}})
    ['python: 3.11.4 -> 3.12.1', 'a: 1 -> nothing']
    """
    found: list[str] = []
    for name in (
        "python",
        "hookloop",
        "torch",
        "git",
        "gpus",
        "driver",
        "cpu",
        "cpu_capability",
        "threads",
        "ranks",
        "system",
    ):
        if name in old and name in new:
            found += _differences(name, old[name], new[name])
    for name in ("packages", "variables"):
        one, other = old.get(name), new.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            keys = [key for key in dict.fromkeys([*one, *other]) if _is_compared(name, str(key))]
            found += [
                line
                for key in keys
                for line in _differences(str(key), one.get(key), other.get(key))
            ]
    return [make_safe(line) for line in dict.fromkeys(found)]


def summarize(differences: Sequence[str], most: int = 8) -> str:
    """Join differences to one line of limited length.

    >>> summarize(["a: 1 -> 2", "b: 1 -> 2", "c: 1 -> 2"], most=2)
    'a: 1 -> 2; b: 1 -> 2; and 1 more'
    """
    shown = [line if len(line) <= 120 else f"{line[:120]}..." for line in differences[:most]]
    rest = len(differences) - most
    return "; ".join([*shown, f"and {rest} more"] if rest > 0 else shown)


def _is_compared(kind: str, key: str) -> bool:
    # torch and hookloop are there by themselves, with the build.
    if kind == "packages":
        return key not in ("torch", "hookloop")
    return not OF_PLACE.fullmatch(key)


def _differences(path: str, old: object, new: object) -> Iterable[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [
            line
            for key in dict.fromkeys([*old, *new])
            for line in _differences(f"{path} {key}", old.get(key), new.get(key))
        ]
    return [] if old == new else [f"{path}: {_show(old)} -> {_show(new)}"]


def _show(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_show, value)) or "nothing"
    if isinstance(value, Mapping):
        return " ".join(str(item) for item in value.values())
    return "nothing" if value is None else str(value)


def _looks_secret(value: str) -> bool:
    # A URL with a password, or one long word of letters and digits such as a key.
    has_login = without_credentials(value) != redact(value)
    is_key = re.fullmatch(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_\-+=.]{24,}", value) is not None
    return has_login or is_key


def _without_home(text: str) -> str:
    home = os.path.expanduser("~")
    return text.replace(home, "~") if len(home) > 1 else text


def _relative(directory: Path, run_dir: Path) -> str | None:
    """Return the working directory as seen from the run; None if they are not of one project."""
    home = Path(os.path.abspath(run_dir))
    return os.path.relpath(directory, home) if home.is_relative_to(directory) else None


@lru_cache(maxsize=1)
def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            found = (line.partition(":")[2].strip() for line in lines if "model name" in line)
            return next(found, "") or platform.machine()
    except OSError:  # Not Linux.
        return platform.processor() or platform.machine()


def driver_version() -> str | None:
    """Return the version of NVIDIA's driver, where the kernel shows it."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"\b\d{3}\.\d+(?:\.\d+)?\b", text)
    return found.group() if found else None
