import json
from pathlib import Path

import pytest
import torch
from tests.unit.checkpoint.sharding import SAVE, run_ranks, save_trained

from hookloop.checkpoint.shards.manifest import verify
from hookloop.checkpoint.shards.reading import Shards
from hookloop.checkpoint.shards.writing import stage, staged_directory, write
from hookloop.checkpoint.state.compare import compare
from hookloop.errors import CheckpointError

READ = """
from hookloop.checkpoint.state.compare import compare
from hookloop.checkpoint.state.optimizers import optimizer_state
from hookloop.checkpoint.shards.reading import load_into

for name in NAMES:
    model, optimizer = build(seed=1, shard=SHARD)
    rest = load_into(model, {"main": optimizer}, home / name, group if SHARD else None)
    expected = torch.load(home / f"{name}.whole", weights_only=True)
    found = {n: full(v) for n, v in model.state_dict().items()}
    assert not compare(found, expected["model"]), name
    state = optimizer_state(model, optimizer)
    kept = {n: {k: full(v) for k, v in one.items()} for n, one in state["state"].items()}
    state["state"] = kept
    assert not compare(state, expected["main"]), compare(state, expected["main"])
    assert model.third.weight is model.second.weight
    assert rest["progress"] == {"iter": 3} and list(rest) == ["progress", "averaged", "rng"]
    assert torch.equal(rest["averaged"]["first.bias"], 2 * found["first.bias"])
    assert [one[0] for one in rest["rng"]] == list(range(int(name.split("_")[1])))
    before = {n: full(v).clone() for n, v in model.state_dict().items()}
    model(torch.randn(6, 3)).square().mean().backward()
    optimizer.step()  # It is whole: training continues.
    assert not torch.equal(full(model.state_dict()["first.weight"]), before["first.weight"])
"""


@pytest.mark.slow
def test_what_some_ranks_wrote_other_ranks_read(tmp_path: Path) -> None:
    names = [save_trained(tmp_path, size, f"of_{size}").name for size in (1, 2, 3, 4)]
    for size in (1, 2, 3):
        run_ranks(tmp_path, size, f"NAMES, SHARD = {names}, True\n{READ}")
    run_ranks(tmp_path, 1, f"NAMES, SHARD = {names}, False\n{READ}")  # A plain model.
    for name in names:
        manifest = verify(tmp_path / name)
        assert manifest.facts == {"ranks": int(name[-1]), "strategy": "sharded"}
        files = {path.name for path in (tmp_path / name).iterdir()}
        ranks = {f"__{rank}_0.distcp" for rank in range(int(name[-1]))}
        assert files == {"manifest.json", ".metadata", "state.pt", *ranks}
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_plain_torch_reads_it(tmp_path: Path) -> None:
    from torch.distributed import checkpoint as dcp
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    directory = save_trained(tmp_path, 2)
    expected = torch.load(f"{directory}.whole", weights_only=True)
    weights = {name: torch.zeros_like(value) for name, value in expected["model"].items()}
    dcp.load({"model": weights}, checkpoint_id=directory, no_dist=True)
    assert not compare(weights, expected["model"])
    dcp_to_torch_save(directory, tmp_path / "one.pt")
    one = torch.load(tmp_path / "one.pt", weights_only=True)
    assert not compare(one["model"], expected["model"])
    moments = one["optimizers"]["main"]["state"]["first.weight"]["exp_avg_sq"]
    assert torch.equal(moments, expected["main"]["state"]["first.weight"]["exp_avg_sq"])


def state(value: float = 1.0, iteration: int = 3) -> dict[str, object]:
    return {
        "model": {"w": torch.full((4, 2), value), "n": torch.tensor(3)},
        "optimizers": {"main": {"state": {"w": {"step": torch.tensor(1.0)}}, "param_groups": []}},
        "progress": {"iter": iteration},
    }


def test_a_process_alone_writes_a_directory_too(tmp_path: Path) -> None:
    written = write(stage(state()), tmp_path / "iter_3")
    manifest = verify(tmp_path / "iter_3")
    assert written is not None and (written.size, written.crc32) == (manifest.size, manifest.crc32)
    assert not compare(Shards.open(tmp_path / "iter_3").read_all(), state())


def test_an_older_directory_of_that_name_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write(stage(state()), tmp_path / "last")
    (tmp_path / "last" / "note").touch()
    write(stage(state(2.0)), tmp_path / "last")
    assert Shards.open(tmp_path / "last").read_all()["model"]["w"][0, 0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_one_state_is_written_to_two_places(tmp_path: Path) -> None:
    staged = stage(state())
    for name in ("a", "b"):
        write(staged, tmp_path / name / "iter_3")
        assert not compare(Shards.open(tmp_path / name / "iter_3").read_all(), state())


def test_two_tensors_of_one_name_are_rejected(tmp_path: Path) -> None:
    twice = {"model": {"a": {"b": torch.ones(1)}, "a.b": torch.ones(1)}}
    with pytest.raises(CheckpointError, match="rank 0.*'model.a.b'"):
        stage(twice)


def test_a_write_that_failed_can_be_repeated(tmp_path: Path, monkeypatch) -> None:
    staged, directory = stage(state()), tmp_path / "iter_3"
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write(staged, directory)
    assert not directory.exists()
    monkeypatch.undo()
    write(staged, directory)
    assert not compare(Shards.open(directory).read_all(), state())
    assert not staged_directory(directory, staged.token).exists()


def full_disk(*args: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.slow
def test_a_rank_whose_disk_is_full_is_named_and_tries_again(tmp_path: Path) -> None:
    run_ranks(
        tmp_path,
        3,
        SAVE
        + """
from hookloop.errors import CheckpointError

model, optimizer = build(steps=1)
save(model, optimizer, home / "iter_1", 1)
staged = stage(Snapshot().take(state_of(model, optimizer)), group)
real, fsync = os.fsync, os.fsync
dist.barrier()
if rank == 1:
    def fsync(number):
        raise OSError(28, "No space left on device")
os.fsync = fsync
try:
    write(staged, home / "iter_2")
    print("written")
except (OSError, CheckpointError) as error:
    print(type(error).__name__, error)
os.fsync = real
dist.barrier()
assert not (home / "iter_2").exists() and (home / "iter_1" / "manifest.json").exists()
threads = [threading.Thread(target=write, args=(staged, home / "iter_2"))] if rank < 2 else []
for thread in threads:  # The third has done its part.
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
""",
    )
    outputs = [(tmp_path / f"meeting0-{rank}").read_text() for rank in range(3)]
    assert "rank 1 failed: [Errno 28] No space left on device" in outputs[0]
    assert "OSError [Errno 28]" in outputs[1]
    assert "written" in outputs[2]
    assert verify(tmp_path / "iter_2").facts == {"ranks": 3}


@pytest.mark.slow
def test_ranks_that_do_not_report_are_named(tmp_path: Path) -> None:
    outputs = run_ranks(
        tmp_path,
        3,
        SAVE
        + """
from hookloop.errors import CheckpointError
model, optimizer = build()
staged = stage(Snapshot().take(state_of(model, optimizer)), group)
if rank == 0:
    for options in ({"timeout": 0.2}, {"failed": lambda: "rank 2 is gone"}):
        try:
            write(staged, home / "iter_1", **options)
        except CheckpointError as error:
            print(error)
""",
    )
    assert "no report of rank 1, 2 in 0.2 s" in outputs[0]
    assert "is not complete: rank 2 is gone" in outputs[0]
    assert not (tmp_path / "iter_1").exists()


KILL = (
    SAVE
    + """
import signal
from hookloop.checkpoint.shards import writing as shards
from hookloop.checkpoint.store import storage

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

mesh = init_device_mesh("cpu", (2,))


def staged_state(iteration):
    weights = distribute_tensor(torch.randn(5, 3), mesh, [Shard(0)])
    state = {"model": {"w": weights}, "averaged": {"w": weights * 2}}
    return stage(Snapshot().take({**state, "progress": {"iter": iteration}}), group)


write(staged_state(1), home / "last")
dist.barrier()
victim, name, count = VICTIM
calls = 0


def dying(function):
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call


staged = staged_state(2)
if rank == victim:
    module, _, attribute = name.rpartition(".")
    where = {"os": os, "shards": shards, "storage": storage}[module]
    setattr(where, attribute, dying(getattr(where, attribute)))
try:
    write(staged, home / "last", timeout=TIMEOUT)
except Exception as error:
    print(error)
os._exit(0)  # The group is broken.
"""
)

DEATHS = [
    *((1, "os.fsync", count) for count in (1, 2, 3)),  # Shards, report, names.
    (1, "os.replace", 1),
    # Shards, the rest, the description, names, the manifest, names, the new name.
    *((0, "os.fsync", count) for count in range(1, 8)),
    (0, "os.replace", 2),
    *((0, "os.rename", count) for count in (1, 2)),
    (0, "shards.put_in_place", 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "victim",
    [
        death if at % 5 == 1 else pytest.param(death, marks=pytest.mark.long)
        for at, death in enumerate(DEATHS)
    ],
    ids=lambda death: "-".join(map(str, death)),
)
def test_killed_at_any_step_the_last_good_one_stays(tmp_path: Path, victim) -> None:
    from tests.unit.checkpoint.sharding import SECONDS, start_ranks

    from hookloop.checkpoint.store.storage import LocalStorage

    body = KILL.replace("VICTIM", repr(victim)).replace("TIMEOUT", "2")
    processes, files = start_ranks(tmp_path, 2, body)
    for process in processes:
        process.join(SECONDS)
    codes = [process.exitcode for process in processes]
    outputs = [path.read_text() for path in files]
    assert codes[victim[0]] == -9 and codes[1 - victim[0]] == 0, outputs
    LocalStorage(tmp_path).clean()
    assert not [path.name for path in tmp_path.iterdir() if path.name[0] == "."]
    found = Shards.open(tmp_path / "last").read_all()
    assert found["progress"]["iter"] in (1, 2)
    # Whatever is there is a whole of one save.
    assert torch.equal(2 * found["model"]["w"], found["averaged"]["w"])
    assert json.loads((tmp_path / "last" / "manifest.json").read_text())
