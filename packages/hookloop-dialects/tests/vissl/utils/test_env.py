"""The rank of this process."""

from hookloop_dialects.vissl.utils import env


def test_the_ranks_are_those_of_the_environment(monkeypatch):
    assert env.get_machine_local_and_dist_rank() == (0, 0)
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert env.get_machine_local_and_dist_rank() == (1, 3)
