"""How the end of a run is described."""

import pytest
from tests.tiny import make_data, make_trainer

from hookloop import Interrupted, Outcome
from hookloop.errors import RunExistsError
from hookloop.hooks import SaveCheckpoint
from hookloop.outcome import Disabled


@pytest.mark.parametrize(
    ("outcome", "code", "text"),
    [
        (Outcome("completed"), 0, "completed"),
        (Outcome("stopped", "enough"), 0, "stopped (enough)"),
        (Outcome("failed", "ValueError: no"), 1, "failed (ValueError: no)"),
        (Outcome("interrupted", "SIGTERM", 15), 143, "interrupted (SIGTERM)"),
        (Outcome("interrupted", "KeyboardInterrupt"), 130, "interrupted (KeyboardInterrupt)"),
        (Outcome("completed", problem="disk full"), 1, "completed"),
        (
            Outcome(
                "stopped", "enough", disabled=(Disabled("a", "x", "e"), Disabled("b", "x", "e"))
            ),
            0,
            "stopped (enough; without the hooks a, b, which failed)",
        ),
        (
            Outcome("completed", disabled=(Disabled("a", "x", "e"), Disabled("a", "y", "e"))),
            0,
            "completed (without the hook a, which failed)",
        ),
    ],
)
def test_an_outcome_has_an_exit_code_and_a_line(outcome, code, text):
    assert (outcome.exit_code, str(outcome)) == (code, text)


def test_an_interruption_is_an_exit_with_the_code_of_its_signal():
    interrupted = Interrupted(Outcome("interrupted", "SIGINT", 2))
    assert isinstance(interrupted, SystemExit)
    assert (interrupted.code, str(interrupted)) == (130, "SIGINT")


def test_what_a_notebook_shows_is_short(tmp_path):
    trainer = make_trainer(val_data=make_data(4), max_epochs=2, run_dir=tmp_path)
    for shown in (repr(trainer), repr(trainer.run)):
        assert "0 of 6 iterations" in shown
    outcome = trainer.train()
    assert f"val/loss={outcome.metrics['val/loss']:.4g}" in repr(outcome)
    for shown in (repr(trainer), repr(trainer.run)):
        assert "6 of 6 iterations, 2 of 2 epochs done" in shown
    assert all(len(repr(one)) < 200 for one in (trainer, trainer.run, outcome))


def test_a_cell_that_is_run_again_is_told_how(tmp_path):
    def cell(**options):
        return make_trainer(run_dir=tmp_path, hooks=[SaveCheckpoint()], **options).train()

    cell()
    with pytest.raises(RunExistsError, match="resume='auto'"):
        cell()
    assert cell(resume="auto").status == "completed"


def test_the_history_is_what_the_run_has_written(tmp_path):
    trainer = make_trainer(
        default_hooks={"console": None}, run_dir=tmp_path / "a", val_data=make_data(), max_epochs=3
    )
    outcome = trainer.train()
    assert outcome.history["val/loss"].iters == [3, 6, 9]
    assert outcome.history["val/loss"].values[-1] == outcome.metrics["val/loss"]
    assert len(outcome.history.to_pandas()) == len(outcome.history.rows())
    shown = outcome._repr_html_()
    assert "<b>completed</b>" in shown and "<td>val/loss</td><td>3</td>" in shown
    # With no hook that writes them, there are none, and it says so.
    assert "metrics" in repr(make_trainer().train().history)
