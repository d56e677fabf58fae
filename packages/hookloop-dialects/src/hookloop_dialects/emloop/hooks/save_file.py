"""`SaveFile`: keep copies of files with the results."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from hookloop.dialects import drafted
from hookloop_dialects.emloop.hooks.abstract_hook import AbstractHook


class SaveFile(AbstractHook):
    """Copy files into the output directory before the training.

    Args:
        files: Paths of the files.
        output_dir: The directory.
        kwargs: See `AbstractHook`.
    """

    def __init__(self, files: Iterable[str], output_dir: str, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._files = [Path(path) for path in files]
        self._output_dir = output_dir

    def before_training(self) -> None:
        for path in self._files:
            assert path.exists(), f"there is no file '{path}' to save"
            # The copy appears under its name when it is complete.
            with drafted(Path(self._output_dir) / path.name) as draft:
                shutil.copy(path, draft)
