"""``mmengine.utils``: the small functions that hook files import from there."""

from __future__ import annotations

from typing import NoReturn

from hookloop_mmengine.missing import reject
from hookloop_mmengine.utils.manager import (
    ManagerMeta,
    ManagerMixin,
)
from hookloop_mmengine.utils.misc import (
    apply_to,
    check_prerequisites,
    concat_list,
    deprecated_api_warning,
    deprecated_function,
    get_object_from_string,
    has_method,
    import_modules_from_strings,
    is_list_of,
    is_method_overridden,
    is_seq_of,
    is_str,
    is_tuple_of,
    iter_cast,
    list_cast,
    requires_executable,
    requires_package,
    slice_list,
    to_1tuple,
    to_2tuple,
    to_3tuple,
    to_4tuple,
    to_ntuple,
    tuple_cast,
)
from hookloop_mmengine.utils.path import (
    check_file_exist,
    fopen,
    is_abs,
    is_filepath,
    mkdir_or_exist,
    scandir,
    symlink,
)
from hookloop_mmengine.utils.progressbar import (
    ProgressBar,
    track_iter_progress,
    track_parallel_progress,
    track_progress,
)
from hookloop_mmengine.utils.version_utils import (
    digit_version,
    get_git_hash,
)

__all__ = [
    "ManagerMeta",
    "ManagerMixin",
    "ProgressBar",
    "apply_to",
    "check_file_exist",
    "check_prerequisites",
    "concat_list",
    "deprecated_api_warning",
    "deprecated_function",
    "digit_version",
    "fopen",
    "get_git_hash",
    "get_object_from_string",
    "has_method",
    "import_modules_from_strings",
    "is_abs",
    "is_filepath",
    "is_list_of",
    "is_method_overridden",
    "is_seq_of",
    "is_str",
    "is_tuple_of",
    "iter_cast",
    "list_cast",
    "mkdir_or_exist",
    "requires_executable",
    "requires_package",
    "scandir",
    "slice_list",
    "symlink",
    "to_1tuple",
    "to_2tuple",
    "to_3tuple",
    "to_4tuple",
    "to_ntuple",
    "track_iter_progress",
    "track_parallel_progress",
    "track_progress",
    "tuple_cast",
]


def __getattr__(name: str) -> NoReturn:
    reject(__name__, name)
