"""The base class of MMEngine's hooks."""

from types import SimpleNamespace

import pytest

from hookloop_mmengine.hooks import Hook


def runner(**counters):
    return SimpleNamespace(**({"epoch": 0, "iter": 0, "max_epochs": 3, "max_iters": 9} | counters))


def test_there_are_22_stages_in_mmengines_order():
    assert len(set(Hook.stages)) == 22
    assert Hook.stages[:4] == (
        "before_run", "after_load_checkpoint", "before_train", "before_train_epoch",
    )  # fmt: skip
    assert Hook.stages.index("before_save_checkpoint") == Hook.stages.index("after_val") + 1
    assert Hook.stages[-1] == "after_run"
    assert all(callable(getattr(Hook, stage)) for stage in Hook.stages)


@pytest.mark.parametrize(
    ("n", "start", "numbers"),
    [
        (1, 0, [1, 2, 3, 4, 5, 6, 7, 8]),
        (3, 0, [3, 6]),
        (3, 2, [2, 5, 8]),
        (5, 7, [7]),
        (0, 0, []),
        (-1, 0, []),
        (2, 9, []),
    ],
)
def test_every_n_counts_from_the_start(n, start, numbers):
    hook = Hook()
    epochs = [e + 1 for e in range(8) if hook.every_n_epochs(runner(epoch=e), n, start)]
    iters = [i + 1 for i in range(8) if hook.every_n_train_iters(runner(iter=i), n, start)]
    assert epochs == iters == numbers


@pytest.mark.parametrize(
    ("n", "wanted"), [(1, [0, 1, 2, 3]), (2, [1, 3]), (5, []), (0, []), (-2, [])]
)
def test_every_n_inner_iters_counts_batches(n, wanted):
    assert [index for index in range(4) if Hook().every_n_inner_iters(index, n)] == wanted


def test_the_last_ones():
    hook = Hook()
    assert [e for e in range(4) if hook.is_last_train_epoch(runner(epoch=e))] == [2]
    assert [i for i in range(10) if hook.is_last_train_iter(runner(iter=i))] == [8]
    assert [index for index in range(3) if hook.end_of_epoch([1, 2], index)] == [1]


def test_generic_methods_get_the_mode():
    class Generic(Hook):
        def __init__(self):
            self.calls = []

        def _before_epoch(self, runner, mode="train"):
            self.calls.append(("before_epoch", mode))

        def _after_epoch(self, runner, mode="train"):
            self.calls.append(("after_epoch", mode))

        def _before_iter(self, runner, batch_idx, data_batch=None, mode="train"):
            self.calls.append(("before_iter", mode, batch_idx, data_batch))

        def _after_iter(self, runner, batch_idx, data_batch=None, outputs=None, mode="train"):
            self.calls.append(("after_iter", mode, batch_idx, data_batch, outputs))

    hook, given = Generic(), runner()
    for mode in ("train", "val", "test"):
        getattr(hook, f"before_{mode}_epoch")(given)
        getattr(hook, f"before_{mode}_iter")(given, batch_idx=3, data_batch="data")
        getattr(hook, f"after_{mode}_iter")(given, batch_idx=3, data_batch="data", outputs="out")
        getattr(hook, f"after_{mode}_epoch")(given)
        assert hook.calls == [
            ("before_epoch", mode),
            ("before_iter", mode, 3, "data"),
            ("after_iter", mode, 3, "data", "out"),
            ("after_epoch", mode),
        ]
        hook.calls.clear()


def test_triggered_stages_are_those_that_are_overridden():
    class Some(Hook):
        def before_run(self, runner): ...
        def _after_iter(self, runner, batch_idx, data_batch=None, outputs=None, mode="train"): ...

    assert Hook().get_triggered_stages() == []
    assert Some().get_triggered_stages() == [
        "before_run", "after_train_iter", "after_val_iter", "after_test_iter",
    ]  # fmt: skip


def test_a_stage_is_listed_once_when_both_methods_are_overridden():
    class Both(Hook):
        def before_val_epoch(self, runner): ...
        def _before_epoch(self, runner, mode="train"): ...

    assert Both().get_triggered_stages() == [
        "before_train_epoch", "before_val_epoch", "before_test_epoch",
    ]  # fmt: skip
