import pytest
import torch
from tests.integration.many_ranks import make, train
from tests.ranks import each_rank, on_ranks

from hookloop import Hook
from hookloop.errors import HookloopError
from hookloop.trainer.several_ranks import agree_on_order, check_alike, join_orders, share_streams


def test_one_process_shares_nothing():
    run = make(None, resume=None, default_hooks=False)[0].run
    share_streams(run)
    join_orders(run)
    agree_on_order(run, is_new=True)
    assert run.train_data.shares() is None and run.train_data.order.shared is None


@pytest.fixture
def three_ranks(monkeypatch):
    """The environment of the first of three ranks; nothing is connected."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"parallel": "none"},
            "allows one process, and the launcher has started 3",
        ),
        ({"batch_size": 2}, "batch"),
        ({"parallel": {"strategy": "sharded", "mesh": {"shard": 2}}}, "mesh has 1 x 2 = 2 ranks"),
        ({"parallel": {"strategy": "sharded", "shard": ["Blok"]}}, "no module of the class Blok"),
    ],
)
def test_what_cannot_work_is_rejected_before_anything_starts(three_ranks, changes, message):
    with pytest.raises(HookloopError, match=message):
        make(None, resume=None, default_hooks=False, **changes)


def test_an_optimizer_that_cannot_step_shards_is_rejected_by_check(three_ranks):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adafactor(model.parameters())
    with pytest.raises(HookloopError, match="Adafactor, which cannot step a sharded model"):
        make(None, resume=None, model=lambda: model, optimizer=optimizer, parallel="sharded")


def test_updates_in_a_loop_of_the_users_own_are_rejected(three_ranks):
    trainer, _ = make(None, resume=None, default_hooks=False)
    rejected = pytest.raises(HookloopError, match="cannot average the gradients of 3 ranks")
    with rejected, trainer.loop():
        pass


def test_a_hook_that_writes_a_file_on_all_ranks_is_rejected_by_check(three_ranks):
    class Writes(Hook):
        def after_train_epoch(self, run):
            (run.dir / "epoch.txt").write_text("done")

    trainer, _ = make(None, resume=None, default_hooks=False, hooks=[Writes()])
    with pytest.raises(HookloopError, match="would write each of them on all ranks"):
        trainer.check()


@pytest.mark.slow
def test_all_data_of_a_run_is_drawn_from_one_order():
    def work():
        run = make(None, resume=None, default_hooks=False)[0].run
        run._internals.ranks.open(torch.device("cpu"))
        torch.manual_seed(run.world.rank)  # As if each rank had drawn something else.
        agree_on_order(run, is_new=True)
        return (
            run.train_data.order.shared is run.val_data[""].order.shared,
            run.train_data.order.now.state["torch"],
            torch.rand(1).item(),
        )

    results = on_ranks(work, 3)
    assert all(is_one for is_one, _, _ in results)
    assert all(torch.equal(results[0][1], state) for _, state, _ in results)
    assert len({drawn for *_, drawn in results}) == 3


@pytest.mark.slow
def test_ranks_with_other_hooks_are_rejected(tmp_path):
    import os

    from hookloop.hooks import StopAfter

    def work():
        hooks = [StopAfter(iterations=3)] if os.environ["RANK"] == "1" else []
        run = make(tmp_path, hooks=hooks)[0]
        run.check()
        run.run._internals.ranks.open(torch.device("cpu"))
        check_alike(run.run)

    ends = each_rank(work, 2)
    assert [end.code for end in ends] == [1, 1]
    assert "Rank 1 was started with another hooks than rank 0" in ends[0].error


@pytest.mark.slow
def test_weights_are_those_of_the_first_rank(tmp_path):
    def work():
        trainer, _ = make(tmp_path / "run", max_epochs=1)
        rank = trainer.run.world.rank
        with torch.no_grad():
            trainer.run.model.inner.bias.fill_(float(rank))
        seen = []
        trainer.on("before_train")(lambda run: seen.append(run.model.inner.bias[0].item()))
        trainer.train()
        return seen

    assert on_ranks(work, 3) == [[0.0]] * 3


@pytest.mark.slow
def test_an_update_of_the_users_own_is_averaged(tmp_path):
    from hookloop import Update
    from hookloop.update.objective import forward_inputs, loss_from

    class Own(Update):
        def make(self, run, batches):
            self.zero_grad()
            run.batch = batches[0]
            self.backward(self.compute(run))
            self.apply(run)

    def work(alone=False):
        from tests.integration.many_ranks import Plain
        from torch.nn.functional import mse_loss

        torch.manual_seed(0)
        model = Plain()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        step = Own("", forward_inputs, loss_from(mse_loss), [optimizer])
        changes = {"model": lambda: model, "loss": None, "step": step, "optimizer": optimizer}
        return train(None, resume=None, default_hooks=False, **changes)["weights"]

    alone = work()
    for weights in on_ranks(work, 3):
        assert all(torch.allclose(weights[name], alone[name], atol=1e-6) for name in alone)
