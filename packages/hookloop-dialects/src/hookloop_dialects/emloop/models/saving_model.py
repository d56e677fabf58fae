"""`SavingModel`: the model as emloop's hooks know it, an object with ``save(name_suffix)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookloop import Save

if TYPE_CHECKING:
    from hookloop import Run


class SavingModel:
    """The module in training with emloop's ``save``; everything else is the module's own.

    Args:
        run: The run whose model it is.
        owner: Name of the hook that holds it.
    """

    # The run, not the module: the engine may wrap or replace the module before training.

    def __init__(self, run: Run, owner: str) -> None:
        self._run = run
        self._owner = owner

    def save(self, name_suffix: str) -> str:
        """Request the checkpoint ``model_<suffix>.pth`` and return its path.

        The engine writes it at the next safe point, while the training continues.
        """
        name = f"model_{name_suffix}.pth"
        self._run.save(Save(name, owner=self._owner))
        return str(self._run.dir / name)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._run.model(*args, **kwargs)

    def __getattr__(self, name: str) -> object:
        return getattr(self._run.model, name)
