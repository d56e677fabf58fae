import collections
import enum
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.checkpoint.sharding import run_ranks

from hookloop import secret
from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.checkpoint.store.limits import check_contents
from hookloop.errors import CheckpointError


def reload(checkpoint):
    """Write and read it as a checkpoint is written and read."""
    file = io.BytesIO()
    torch.save(checkpoint, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_the_copy_does_not_follow_the_training():
    weights = torch.ones(3)
    taken = Snapshot().take({"model": {"w": weights}, "list": [weights, (weights * 2,)]})
    weights.zero_()
    assert taken["model"]["w"].tolist() == [1, 1, 1]
    assert taken["list"][1][0].tolist() == [2, 2, 2]


def test_memory_is_used_again():
    snapshot, weights = Snapshot(), torch.ones(3)
    first = snapshot.take({"w": weights})["w"]
    weights.add_(1)
    second = snapshot.take({"w": weights})["w"]
    assert second.data_ptr() == first.data_ptr()
    assert second.tolist() == [2, 2, 2]


def test_memory_of_what_is_gone_is_given_back():
    snapshot = Snapshot()
    snapshot.take({"a": torch.ones(1000), "b": torch.ones(2)})
    snapshot.take({"b": torch.ones(2)})
    assert snapshot.nbytes == 8


def test_a_tensor_of_another_shape_gets_another_buffer():
    snapshot = Snapshot()
    snapshot.take({"w": torch.ones(3)})
    assert snapshot.take({"w": torch.ones(2, 2)})["w"].shape == (2, 2)
    assert snapshot.take({"w": torch.ones(2, 2).double()})["w"].dtype == torch.float64


def test_tied_weights_share_their_memory_in_the_file_too():
    model = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
    model[1].weight = model[0].weight
    snapshot = Snapshot()
    taken = snapshot.take({"model": model.state_dict()})
    assert snapshot.nbytes == (9 + 3 + 3) * 4
    loaded = reload(taken)["model"]
    assert loaded["0.weight"].data_ptr() == loaded["1.weight"].data_ptr()


def test_the_order_in_memory_is_kept():
    image = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    taken = Snapshot().take({"w": image})["w"]
    assert taken.stride() == image.stride()
    assert torch.equal(reload({"w": taken})["w"], image)


def test_expanded_and_sparse_tensors_are_copied():
    expanded, sparse = torch.ones(1).expand(4), torch.eye(3).to_sparse()
    taken = reload(Snapshot().take({"e": expanded, "s": sparse}))
    assert taken["e"].tolist() == [1, 1, 1, 1]
    assert torch.equal(taken["s"].to_dense(), torch.eye(3))


def test_the_versions_of_a_models_parts_go_along():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    loaded = reload(Snapshot().take({"model": model.state_dict()}))["model"]
    assert loaded._metadata["0"] == {"version": 2}


def test_numbers_of_other_kinds_become_plain_ones():
    class Colour(enum.IntEnum):
        RED = 1

    class Name(str):
        pass

    values = {
        "numpy": np.float64(0.5),
        "count": np.int32(3),
        "flag": np.bool_(True),
        "enum": Colour.RED,
        "text": Name("a"),
        "counter": collections.Counter("aab"),
        np.int64(5): {1, 2},
        "dtype": torch.float16,
    }
    loaded = reload(Snapshot().take(values))
    assert loaded["numpy"] == 0.5 and type(loaded["numpy"]) is float
    assert loaded["count"] == 3 and loaded["flag"] is True and loaded["enum"] == 1
    assert (loaded["text"], loaded["counter"]) == ("a", {"a": 2, "b": 1})
    assert loaded[5] == {1, 2} and loaded["dtype"] is torch.float16


@pytest.mark.parametrize("value", [Path("a"), np.zeros(2), object(), collections.deque([1])])
def test_what_a_file_cannot_hold_is_rejected_with_its_path(value):
    with pytest.raises(CheckpointError, match=r"The state 'hooks\.mine\.x' holds a \w+"):
        Snapshot().take({"hooks": {"mine": {"x": value}}})


def test_what_no_resume_would_accept_is_not_saved() -> None:
    def nested(depth: int) -> object:
        return [nested(depth - 1)] if depth else 1

    check_contents(Snapshot().take({"hooks": {"mine": nested(98)}}), 1 << 20)
    with pytest.raises(CheckpointError, match="'hooks.mine.0' has containers more than 100 deep"):
        Snapshot().take({"hooks": {"mine": nested(99)}})


def test_the_name_of_a_parameter_stays_even_if_it_is_a_secret(monkeypatch) -> None:
    monkeypatch.setattr(secret, "_HIDDEN", {})
    secret.hide("classifier", "${secret:WORD}")
    model = torch.nn.ModuleDict({"classifier": torch.nn.Linear(1, 1)})
    taken = Snapshot().take({"model": model.state_dict(), "note": "the classifier"})
    assert list(taken["model"]) == ["classifier.weight", "classifier.bias"]
    assert taken["note"] == "the ${secret:WORD}"


@pytest.mark.slow
def test_shards_are_copied_each_for_itself(tmp_path: Path) -> None:
    outputs = run_ranks(
        tmp_path,
        3,
        """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        from hookloop.checkpoint.saving.snapshot import Snapshot

        mesh = init_device_mesh("cpu", (3,))
        place = lambda x: distribute_tensor(x, mesh, [Shard(0)])
        ones, twos = place(torch.ones(4, 3)), place(torch.full((4, 3), 2.0))
        small, copy = place(torch.full((1, 3), 3.0)), place(torch.ones(1, 3))
        snapshot = Snapshot()
        state = {"a": ones, "b": twos, "tied": ones, "small": small, "copy": copy}
        taken = snapshot.take(state)
        pointers = {n: v.to_local().data_ptr() for n, v in taken.items()}
        with torch.no_grad():
            for value in (ones, twos, small):
                value.to_local().zero_()
        again = snapshot.take(state)
        before = [full(again[n])[0, 0].item() for n in state]  # The buffers are used again.
        assert pointers == {n: v.to_local().data_ptr() for n, v in again.items()}
        twos.to_local().fill_(2)
        taken = snapshot.take(state)
        twos.to_local().zero_()
        print(before, [tuple(full(v).shape) for v in taken.values()], taken["tied"] is taken["a"])
        sums = [full(v).sum().item() for v in taken.values()]
        print(sums, tuple(taken["small"].to_local().shape))
        print(snapshot.nbytes, taken["b"].placements, taken["b"].to_local().device)
        """,
    )
    shapes = "[(4, 3), (4, 3), (4, 3), (1, 3), (1, 3)]"
    for rank, output in enumerate(outputs):
        lines = output.splitlines()[-3:]
        assert lines[0] == f"[0.0, 0.0, 0.0, 0.0, 1.0] {shapes} {rank < 2}"  # Rank 2 holds none.
        assert lines[1] == f"[0.0, 24.0, 0.0, 0.0, 3.0] ({int(rank == 0)}, 3)"
        rows = [2, 2, 0][rank] * 2 + [2, 0, 0][rank]
        assert lines[2] == f"{rows * 12} (Shard(dim=0),) cpu"


@pytest.mark.slow
def test_a_run_without_shards_does_not_import_what_they_need() -> None:
    code = (
        "import sys, torch; from hookloop.checkpoint.saving.snapshot import Snapshot;"
        "Snapshot().take({'a': torch.ones(2)});"
        "assert 'torch.distributed.tensor' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
