"""Lists of hooks for the first versions of VISSL."""

from tests.vissl.phases import tracing, train

from hookloop import dialects


def test_hooks_that_counted_stand_for_what_the_task_counts(tmp_path):
    with dialects.alias("vissl"):
        from vissl.hooks.state_update_hooks import (
            UpdateBatchesSeenHook,
            UpdateTestBatchTimeHook,
            UpdateTrainBatchTimeHook,
            UpdateTrainIterationNumHook,
        )
    kinds = (UpdateBatchesSeenHook, UpdateTrainIterationNumHook, UpdateTrainBatchTimeHook,
             UpdateTestBatchTimeHook)  # fmt: skip
    hook = tracing(
        lambda task: (task.iteration, task.batches, len(task.batch_time)), ["on_phase_end"]
    )
    train(tmp_path, *(kind() for kind in kinds), hook, max_epochs=1)
    assert [call[1:] for call in hook.calls] == [(3, 3, 3), (3, 1, 4)]
