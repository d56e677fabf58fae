import pytest
import torch
from tests.integration.many_ranks import make
from tests.ranks import each_rank

from hookloop.parallel.failure import PeerFailed
from hookloop.trainer.ending import break_off, breaking_off, explaining


def lone_run():
    return make(None, resume=None, default_hooks=False)[0].run


def test_an_error_in_one_process_stays_what_it_is():
    with pytest.raises(RuntimeError, match="gloo"), explaining(lone_run()):
        raise RuntimeError("gloo: Connection closed by peer")


def test_an_exit_without_a_code_is_not_a_failure():
    run = lone_run()
    break_off(run, SystemExit(0))
    assert not run._internals.ranks.is_broken
    break_off(run, SystemExit(3))
    assert run._internals.ranks.is_broken


@pytest.mark.slow
def test_a_failure_before_the_run_is_known_to_all():
    def work():
        run = lone_run()
        run._internals.ranks.open(torch.device("cpu"))
        with breaking_off(run):
            if run.world.rank == 1:
                raise OSError("disk is gone")
            run._internals.ranks.gather(1)

    ends = each_rank(work, 3)
    assert [end.code for end in ends] == [1, 1, 1]
    assert "OSError: disk is gone" in ends[1].error
    for rank in (0, 2):
        assert PeerFailed.__name__ in ends[rank].error
        assert "rank 1 failed in iteration 0: OSError: disk is gone" in ends[rank].error
