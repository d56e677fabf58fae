"""``mmengine.utils``: the small functions that hook files import from there."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.utils.manager import (
    ManagerMeta,
    ManagerMixin,
)
from hookloop_mmengine.utils.misc import (
    get_object_from_string,
    is_list_of,
    is_seq_of,
    is_tuple_of,
)
from hookloop_mmengine.utils.path import mkdir_or_exist
from hookloop_mmengine.utils.progressbar import ProgressBar
from hookloop_mmengine.utils.version_utils import digit_version

__all__ = [
    "ManagerMeta",
    "ManagerMixin",
    "ProgressBar",
    "digit_version",
    "get_object_from_string",
    "is_list_of",
    "is_seq_of",
    "is_tuple_of",
    "mkdir_or_exist",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
