import sys

import pytest

from hookloop.errors import HookError
from hookloop.hooks import (
    PlotLines,
    SavePredictions,
    WriteMLflow,
    WriteTensorBoard,
    WriteTrackio,
    WriteWandb,
)


@pytest.mark.parametrize(
    ("make", "package", "extra"),
    [
        (WriteTensorBoard, "tensorboard", "tensorboard"),
        (WriteWandb, "wandb", "wandb"),
        (WriteMLflow, "mlflow", "mlflow"),
        (WriteTrackio, "trackio", "trackio"),
        (PlotLines, "matplotlib", "plots"),
        (lambda: SavePredictions(format="parquet"), "pyarrow", "parquet"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    make, package, extra, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)  # What Python does for a package that is not.
    with pytest.raises(HookError, match=rf"'{package}', .* pip install 'hookloop\[{extra}\]'"):
        make()
