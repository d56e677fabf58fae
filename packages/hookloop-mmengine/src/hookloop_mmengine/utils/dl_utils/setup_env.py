"""``mmengine.utils.dl_utils.setup_env``: settings for several processes."""

from __future__ import annotations

import os
import warnings

import torch.multiprocessing as mp


def set_multi_processing(
    mp_start_method: str = "fork", opencv_num_threads: int = 0, distributed: bool = False
) -> None:
    """Set how processes start and how many threads they use.

    Args:
        mp_start_method: ``fork``, ``spawn`` or ``forkserver``.
        opencv_num_threads: The number of threads of OpenCV, if it is installed.
        distributed: Whether several processes train; then each uses one thread unless the
            environment says otherwise.
    """
    current = mp.get_start_method(allow_none=True)
    if current not in (None, mp_start_method):
        warnings.warn(
            f"Multi-processing start method `{mp_start_method}` is different from the previous "
            f"setting `{current}`. It will be force set to `{mp_start_method}`.",
            stacklevel=2,
        )
    mp.set_start_method(mp_start_method, force=True)
    try:
        import cv2  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        cv2 = None
    if cv2 is not None:
        cv2.setNumThreads(opencv_num_threads)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        if distributed and name not in os.environ:
            warnings.warn(f"Setting {name} for each process to be 1 in default.", stacklevel=2)
            os.environ[name] = "1"
