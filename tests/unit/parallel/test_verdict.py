import signal
from dataclasses import replace

import pytest

from hookloop.parallel.launch import Ended
from hookloop.parallel.launched import Report
from hookloop.parallel.rendezvous import NotMet
from hookloop.parallel.verdict import find_cause

KILL, TERM = -signal.SIGKILL, -signal.SIGTERM


def failed(rank, blame, message, moment, *, iteration=7, error="ValueError", code=1):
    return Report(rank, 100 + rank, code, False, iteration, blame, error, (message,), "tb", moment)


def ended(*reports, codes=None, error=None):
    return Ended({one.rank: one for one in reports}, codes or {}, error)


def test_ranks_that_completed_have_no_cause():
    assert find_cause(ended(Report(0, 1, 0, True), Report(1, 2, 0, True))) is None


def test_the_first_exception_is_the_cause_and_not_the_connections_it_broke():
    first = failed(2, "own", "ValueError: bad", 5.0)
    later = failed(1, "own", "KeyError: 'x'", 6.0, error="KeyError")
    broken = failed(0, "connection", "RuntimeError: gloo", 4.0)
    told = failed(3, "peer", "rank 2 failed in iteration 7: ValueError: bad", 4.5)
    cause = find_cause(ended(broken, later, first, told, codes={0: 1, 1: 1, 2: 1, 3: 1}))
    assert cause.messages == ("rank 2 failed in iteration 7: ValueError: bad",)
    assert cause.may_pass
    assert cause.repeats == ("ValueError", 7)
    assert (cause.code, cause.traceback) == (1, "tb")


def test_a_user_error_never_passes_and_keeps_its_exit_code():
    user = failed(0, "user", "a.yaml:3: no such key", 1.0, code=2)
    cause = find_cause(ended(user, failed(1, "user", "a.yaml:3: no such key", 1.1, code=2)))
    assert (cause.messages, cause.code, cause.may_pass) == (("a.yaml:3: no such key",), 2, False)
    one = find_cause(ended(Report(0, 1), failed(1, "user", "no samples", 1.0, code=2)))
    assert one.messages == ("rank 1: no samples",)


def test_an_exception_before_the_training_would_come_again():
    cause = find_cause(ended(failed(1, "own", "ImportError: x", 1.0, iteration=None)))
    assert cause.messages == ("rank 1 failed before the training: ImportError: x",)
    assert not cause.may_pass


def test_a_killed_rank_is_the_cause_of_what_follows():
    reports = [failed(0, "connection", "RuntimeError: gloo", 1.0), Report(1, 101), Report(2, 102)]
    cause = find_cause(ended(*reports, codes={2: TERM, 1: KILL, 0: 1}))
    assert cause.messages[0].startswith("rank 1 was killed by SIGKILL after iteration 7: by")
    assert cause.may_pass
    assert cause.repeats is None  # As often as there are restarts.


def test_a_rank_that_ends_without_a_word_is_named():
    cause = find_cause(ended(Report(0, 100), Report(1, 101, iteration=3), codes={1: 7, 0: TERM}))
    assert cause.messages == ("rank 1 ended with exit code 7 after iteration 3, without a reason.",)
    only = find_cause(ended(Report(0, 100), codes={0: TERM}))
    assert (only.messages, only.code) == (("rank 0 was ended by SIGTERM.",), 143)
    assert not only.may_pass


@pytest.mark.parametrize(
    ("what", "passes"), [("ValueError: bad", True), ("hookloop.errors.DataError: none", False)]
)
def test_a_rank_of_another_node_is_judged_as_its_own_launcher_does(what, passes):
    message = f"rank 5 failed in iteration 9: {what}"
    broken = failed(1, "connection", "RuntimeError: gloo", 0.5)
    cause = find_cause(ended(failed(0, "peer", message, 1.0), broken, codes={1: 1, 0: 1}))
    assert cause.messages == (message,)
    assert cause.may_pass is passes
    assert cause.repeats == (what.partition(":")[0], 9)


def test_a_lost_connection_alone_may_pass():
    broken = failed(1, "connection", "RuntimeError: Timed out", 0.5, iteration=None)
    cause = find_cause(ended(broken, codes={1: 1}))
    text = "rank 1: the connection to another rank broke: RuntimeError: Timed out"
    assert cause.messages == (text,)
    assert cause.may_pass


def test_launchers_that_do_not_meet_are_reported():
    cause = find_cause(ended(error=TimeoutError("nobody came")))
    assert cause.messages == ("the ranks could not be started: TimeoutError: nobody came",)


def test_a_lost_launcher_is_named_beside_the_connection_that_broke():
    silent = failed(0, "peer", "the connection to another rank broke", 1.0)
    lost = replace(ended(silent, codes={0: 1}), lost="the launcher on b was lost")
    assert find_cause(lost).messages[1:] == ("the launcher on b was lost",)


def test_ranks_that_were_ended_for_a_lost_launcher_were_not_killed_by_somebody():
    waiting = replace(ended(Report(0, 1), codes={0: KILL}), lost="the launcher on b was lost")
    cause = find_cause(replace(waiting, is_ended_for_lost=True))
    assert cause.messages[0].startswith("the launcher on b was lost; ")
    assert cause.may_pass


def test_launchers_that_did_not_meet_do_not_try_again():
    assert not find_cause(ended(error=NotMet("gave up"))).may_pass
