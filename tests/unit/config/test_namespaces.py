"""The built-in names of each kind."""

import subprocess
import sys

import pytest

from hookloop import hooks
from hookloop.config import namespaces
from hookloop.config.registry import DATA, LOSSES, METRICS, OPTIMIZERS, SCHEDULES
from hookloop.errors import ConfigError


def test_what_torch_offers_is_built_in() -> None:
    import torch

    assert OPTIMIZERS.get("AdamW") is torch.optim.AdamW
    assert SCHEDULES.get("OneCycleLR") is torch.optim.lr_scheduler.OneCycleLR
    assert LOSSES.get("CrossEntropyLoss") is torch.nn.CrossEntropyLoss
    assert LOSSES.get("cross_entropy") is torch.nn.functional.cross_entropy
    assert DATA.get("DataLoader") is torch.utils.data.DataLoader
    assert METRICS.get("MeanSquaredError").__module__.startswith("torchmetrics")
    with pytest.raises(ConfigError, match="'adamw'.*'AdamW'"):
        OPTIMIZERS.get("adamw")


def test_a_base_class_is_not_among_its_subclasses() -> None:
    assert "Optimizer" not in namespaces.optimizers()
    assert "LRScheduler" not in namespaces.schedules()
    assert "Metric" not in namespaces.metrics()
    assert "Dataset" not in namespaces.data()


def test_private_functions_are_not_losses() -> None:
    names = namespaces.losses()
    assert not [name for name in names if name.startswith("_")]
    assert {"kl_div", "nll_loss", "NLLLoss", "binary_cross_entropy"} <= set(names)


def test_our_hooks_are_all_names_and_only_those_are_listed() -> None:
    names = namespaces.hooks()
    assert list(names) == sorted(hooks.__all__)
    assert len(names) == len(hooks.__all__)
    assert names["StopAfter"] is hooks.StopAfter


def test_an_unknown_hook_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        namespaces.hooks()["Zebra"]


@pytest.mark.slow
def test_the_hooks_are_imported_one_by_one() -> None:
    code = (
        "import sys\nfrom hookloop.config.namespaces import hooks\n"
        "hooks()['StopAfter']\nsys.exit('hookloop.hooks.writing.write_csv' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
