"""What hook files ask about the processes of a run."""

import pytest
import torch
import torch.distributed as dist
from tests.ranks import on_ranks
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Trainer, dialects
from hookloop_dialects.vissl.classy_vision.generic import distributed_util as util
from hookloop_dialects.vissl.classy_vision.hooks import ClassyHook


def test_a_single_process_is_primary(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (util.get_rank(), util.get_world_size()) == (0, 1)
    assert util.is_primary() and util.is_master()
    assert not util.is_distributed_training_run()
    util.barrier()


def test_the_rank_is_known_before_the_processes_are_connected(monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert (util.get_rank(), util.get_world_size()) == (2, 3)
    assert util.is_distributed_training_run() and not util.is_primary()


def test_one_process_keeps_its_own():
    tensor = torch.tensor([1.0, 2.0])
    for reduce in (util.all_reduce_mean, util.all_reduce_sum, util.all_reduce_max, util.broadcast):
        assert reduce(tensor) is tensor
    assert util.gather_from_all(torch.tensor(3.0)).tolist() == [3.0]
    assert util.broadcast_object("mine") == "mine"


def _exchange():
    dist.init_process_group("gloo")
    own = float(util.get_rank())
    pair = torch.tensor([own, -own])
    util.barrier()
    return {
        "mean": util.all_reduce_mean(pair.clone()).tolist(),
        "sum": util.all_reduce_sum(pair.clone()).tolist(),
        "max": util.all_reduce_max(pair.clone()).tolist(),
        "numbers": util.gather_from_all(torch.tensor(own)).tolist(),
        # A column, which is not contiguous.
        "rows": util.gather_from_all(pair.repeat(2, 1).T[:1]).tolist(),
        "sent": util.broadcast(pair.clone(), 2).tolist(),
        "object": util.broadcast_object({"from": own}, 1),
        "primary": util.is_primary(),
    }


@pytest.mark.slow
def test_processes_exchange_tensors():
    ranks = on_ranks(_exchange, 3)
    assert [rank.pop("primary") for rank in ranks] == [True, False, False]
    for rank in ranks:
        assert rank == {
            "mean": [1.0, -1.0], "sum": [3.0, -3.0], "max": [2.0, 0.0],
            "numbers": [0.0, 1.0, 2.0], "rows": [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]],
            "sent": [2.0, -2.0], "object": {"from": 1.0},
        }  # fmt: skip


class BatchSizes(ClassyHook):
    on_start = on_phase_end = on_end = on_loss_and_meter = on_phase_start = ClassyHook._noop

    def on_step(self, task):
        self.sizes = task.get_batchsize_per_replica(), task.get_global_batchsize()
        self.mean = float(util.all_reduce_mean(torch.tensor(float(util.get_rank()))))


def _train_with_hook():
    hook, model = BatchSizes(), torch.nn.Linear(1, 1)
    values = torch.arange(9.0)[:, None]
    Trainer(
        model,
        train_data=DataLoader(TensorDataset(values, values), batch_size=5),
        loss=torch.nn.functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        max_epochs=1,
        hooks=[hook],
        default_hooks=False,
    ).train()
    return hook.sizes, hook.mean


@pytest.mark.slow
def test_a_hook_knows_the_batches_of_all_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert on_ranks(_train_with_hook, 2) == [((3, 5), 0.5)] * 2


def test_hook_files_import_them():
    with dialects.alias("vissl"):
        from classy_vision.generic.distributed_util import is_primary
    assert is_primary is util.is_primary


def test_in_one_process_a_model_of_a_hook_stays_as_it_is():
    model = torch.nn.Linear(1, 1)
    assert util.init_distributed_data_parallel_model(model) is model
    tensor, before = util.convert_to_distributed_tensor(torch.ones(1))
    assert util.convert_to_normal_tensor(tensor, before) is tensor
