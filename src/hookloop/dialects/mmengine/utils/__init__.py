"""``mmengine.utils``: the few small functions that hook files import from there."""

from __future__ import annotations

from hookloop.dialects.mmengine.utils.misc import (
    get_object_from_string,
    is_list_of,
    is_seq_of,
    is_str,
    is_tuple_of,
    mkdir_or_exist,
    scandir,
)
from hookloop.dialects.mmengine.utils.progressbar import ProgressBar

__all__ = [
    "ProgressBar",
    "get_object_from_string",
    "is_list_of",
    "is_seq_of",
    "is_str",
    "is_tuple_of",
    "mkdir_or_exist",
    "scandir",
]
