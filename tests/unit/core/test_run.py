"""The run as hooks see it: requests, what it looks up, and how its end is described."""

import pytest
from tests.tiny import make_trainer

from hookloop import Hook
from hookloop.errors import HookError


def test_firing_an_undeclared_point_is_an_error(tmp_path):
    trainer = make_trainer(run_dir=tmp_path)
    trainer.check()
    with pytest.raises(HookError, match="'after_generate' is not a mount point"):
        trainer.run.fire("after_generate")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda run: run.epoch, "It is run.progress.epoch"),
        (lambda run: run.global_step, "It is run.progress.iter"),
        (lambda run: run.log("a", 1), r"It is run.metrics.put\(name, value\)"),
        (lambda run: run.mdoel, "Did you mean 'model'"),
    ],
)
def test_what_others_look_for_in_a_run_is_named(use, message, tmp_path):
    class Look(Hook):
        def after_train_iter(self, run):
            use(run)

    with pytest.raises(AttributeError, match=message):
        make_trainer(hooks=[Look()], run_dir=tmp_path).train()
