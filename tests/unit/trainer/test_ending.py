"""The end of a run: what fails there hides nothing and stops nothing."""

import pytest
from tests.tiny import Record, make_trainer

from hookloop import Hook


def test_a_hook_that_fails_in_the_end_hides_neither_the_failure_nor_the_other_hooks(tmp_path):
    seen = Record()

    class Worse(Hook):
        def on_exception(self, run, error):
            raise OSError("worse")

        def after_run(self, run):
            raise OSError("worst")

    def step(run, batch):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError) as error:
        make_trainer(hooks=[Worse(), seen], step=step, run_dir=tmp_path).train()
    notes = "\n".join(error.value.__notes__)
    assert "OSError: worse" in notes and "OSError: worst" in notes
    assert seen.points[-1] == "after_run"
