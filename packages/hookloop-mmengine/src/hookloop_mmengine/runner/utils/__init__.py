"""``mmengine.runner.utils``: seeds and intervals, under the name that files import."""

from __future__ import annotations

from hookloop_mmengine.runner.seed import set_random_seed

__all__ = ["calc_dynamic_intervals", "set_random_seed"]


def calc_dynamic_intervals(
    start_interval: int, dynamic_interval_list: list[tuple[int, int]] | None = None
) -> tuple[list[int], list[int]]:
    """Return the milestones at which an interval changes, and the interval from each of them on.

    >>> calc_dynamic_intervals(5, [(20, 1)])
    ([0, 20], [5, 1])
    """
    pairs = [(0, start_interval), *(dynamic_interval_list or ())]
    return [milestone for milestone, _ in pairs], [interval for _, interval in pairs]
