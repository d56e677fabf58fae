"""Types for annotations and ``isinstance``: nothing is trained with them."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from hookloop.errors import HookError


class _PassesFor(type):
    """Lets the model that a callback is given pass for a LightningModule."""

    def __instancecheck__(cls, instance: object) -> bool:
        from hookloop_callbacks.on_lightning.module import ModuleView

        return type(instance) is ModuleView or super().__instancecheck__(instance)


class LightningModule(torch.nn.Module, metaclass=_PassesFor):
    """The type of ``pl_module``; a model is a plain ``torch.nn.Module`` here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever is given
        super().__init__()
        reject("LightningModule", "a torch.nn.Module, with Trainer(model, step=...)")


class LightningDataModule:
    """The type of ``trainer.datamodule``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever is given
        reject("LightningDataModule", "Trainer(train_data=..., val_data=...)")


def reject(name: str, instead: str) -> NoReturn:
    """Reject what only the real package has."""
    raise HookError(
        f"lightning is not installed, and hookloop stands in for its callbacks only: there is no "
        f"{name}. Use {instead}."
    )
