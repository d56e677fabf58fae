"""The end of a run: what fails there hides nothing and stops nothing."""

import errno
from pathlib import Path

import pytest
from tests.tiny import Record, make_trainer

from hookloop import Hook
from hookloop.trainer.ending import do_at_end, is_of_directory


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


class Fails(Hook):
    """Fails at the end of the run."""

    def __init__(self, error):
        self.error = error

    def after_run(self, run):
        raise self.error


def test_every_hook_acts_at_the_end_and_the_first_failure_is_raised(tmp_path):
    seen = Record()
    hooks = {"one": Fails(ValueError("first")), "seen": seen, "two": Fails(KeyError("second"))}
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path)
    with pytest.raises(ValueError, match="first") as caught:
        trainer.train()
    assert seen.points[-1] == "after_run"
    assert caught.value.__notes__ == ["raised by the hook 'one' (Fails) at after_run"]


def test_an_exit_at_the_end_waits_for_the_other_hooks(tmp_path):
    seen = Record()
    trainer = make_trainer(hooks=[Fails(SystemExit(3)), seen], run_dir=tmp_path)
    with pytest.raises(SystemExit):
        trainer.train()
    assert seen.points[-1] == "after_run"


@pytest.mark.parametrize(
    ("make", "is_disabled"),
    [
        (lambda run_dir: OSError(errno.ENOSPC, "No space left on device"), True),
        (lambda run_dir: PermissionError(errno.EACCES, "no", str(run_dir / "model.pt")), True),
        (lambda run_dir: OSError(errno.EXDEV, "no", "elsewhere", None, run_dir / "x"), True),
        (lambda run_dir: FileNotFoundError(errno.ENOENT, "no", "data.csv"), False),
        (lambda run_dir: OSError("no connection"), False),
    ],
)
def test_a_hook_that_cannot_write_to_the_runs_directory_does_not_cost_the_training(
    make, is_disabled, tmp_path
):
    trainer = make_trainer(hooks=[Fails(make(tmp_path))], run_dir=tmp_path)
    if is_disabled:
        outcome = trainer.train()
        assert outcome.status == "completed"
        assert [(one.hook, one.point) for one in outcome.disabled] == [("fails", "after_run")]
    else:
        with pytest.raises(OSError, match="no"):
            trainer.train()


def test_a_directory_beside_the_runs_is_not_the_runs():
    directory = Path("runs") / "one"
    for path, expected in {
        "runs/one/a/b.pt": True,
        "runs/one_b/a.pt": False,
        "a.pt": False,
    }.items():
        assert is_of_directory(PermissionError(13, "no", path), directory) is expected
    assert not is_of_directory(OSError(9, "Bad file descriptor", 3), directory)


def test_what_fails_at_the_end_of_a_failed_run_becomes_a_note_of_its_failure():
    def fail(text):
        error = OSError(text)
        error.add_note("raised there")
        raise error

    failure = ValueError("why the run ended")
    do_at_end(failure, fail, "no disk")
    do_at_end(failure, list)
    (note,) = failure.__notes__
    assert "OSError: no disk" in note and "raised there" in note
    with pytest.raises(OSError, match="no disk"):
        do_at_end(None, fail, "no disk")
    with pytest.raises(KeyboardInterrupt):  # A second Ctrl-C ends it at once.
        do_at_end(failure, Fails(KeyboardInterrupt()).after_run, None)
