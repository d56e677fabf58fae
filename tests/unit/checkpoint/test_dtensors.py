from pathlib import Path

import pytest
import torch
from tests.unit.checkpoint.sharding import run_ranks

from hookloop.checkpoint.shards.dtensors import is_sharded, local_part, spread


def test_a_plain_tensor_is_its_own_part() -> None:
    one, like = torch.ones(3), torch.zeros(3)
    assert not is_sharded(one) and not is_sharded("text")
    assert local_part(one) is one
    assert spread(one, like) is one


@pytest.mark.slow
def test_a_whole_tensor_is_cut_as_another_one_is(tmp_path: Path) -> None:
    run_ranks(
        tmp_path,
        3,
        """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        from hookloop.checkpoint.shards.dtensors import is_sharded, local_part, spread

        mesh = init_device_mesh("cpu", (3,))
        for shape in ((7, 3), (1, 3), (4,), (0, 2), (3, 5)):
            whole = torch.arange(torch.Size(shape).numel(), dtype=torch.bfloat16).view(shape)
            for placement in (Shard(0), Replicate(), Shard(len(shape) - 1)):
                like = distribute_tensor(torch.zeros(shape), mesh, [placement])
                cut = spread(whole, like)
                wanted = distribute_tensor(whole, mesh, [placement])
                assert is_sharded(cut) and cut.dtype == torch.bfloat16
                assert torch.equal(local_part(cut), local_part(wanted)), (shape, placement)
                assert torch.equal(cut.full_tensor(), whole)
                assert spread(cut, like) is cut
        """,
    )
