"""`LogProfile`: log where the time of an epoch went."""

from __future__ import annotations

import logging

from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook
from hookloop_dialects.emloop.types import TimeProfile

_log = logging.getLogger()  # emloop logs with the root logger.


class LogProfile(AbstractHook):
    """Log the seconds spent on each stream, on reading data and on hooks."""

    def after_epoch_profile(self, epoch_id: int, profile: TimeProfile, streams: list[str]) -> None:
        # A stream without batches is missing from the profile.
        def total(*names: str) -> float:
            return sum(sum(profile.get(name, ())) for name in names)

        for stream in streams:
            _log.info("\tT %s:\t%f", stream, total(f"eval_batch_{stream}"))
        _log.info("\tT read data:\t%f", total(*(f"read_batch_{stream}" for stream in streams)))
        hooks = [f"after_batch_hooks_{stream}" for stream in streams]
        _log.info("\tT hooks:\t%f", total("after_epoch_hooks", *hooks))
