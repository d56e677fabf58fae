"""How the end of a run is described."""

import pytest

from hookloop import Interrupted, Outcome
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
