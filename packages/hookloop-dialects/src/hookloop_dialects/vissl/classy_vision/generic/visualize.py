"""``classy_vision.generic.visualize``: curves on a Visdom server, a model's graph."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from hookloop.dialects import require
from hookloop_dialects.vissl.classy_vision.generic.modes import eval_model, train_model
from hookloop_dialects.vissl.classy_vision.generic.transfer import get_model_dummy_input

_log = logging.getLogger("classy_vision")


def plot_learning_curves(
    curves: Mapping[str, list[float]],
    visdom_server: Any = None,  # noqa: ANN401 - a Visdom
    env: str | None = None,
    win: str | None = None,
    title: str = "",
) -> Any:  # noqa: ANN401 - Visdom's window
    """Draw curves of the same length in one window; without a connection only a warning.

    Args:
        curves: The numbers of each curve by name; those of batch times are left out.
        visdom_server: The connection.
        env: The environment there.
        win: The window.
        title: Its title.
    """
    if not visdom_server or not visdom_server.check_connection():
        _log.warning("There is no connection to Visdom: the curves are not drawn.")
        return None
    shown = {name: values for name, values in curves.items() if "batch time" not in name}
    columns = torch.stack([torch.tensor(values).float() for values in shown.values()], dim=1)
    steps = torch.arange(len(columns)).unsqueeze(1).expand_as(columns)
    options = {"title": title, "legend": list(shown), "xlabel": "Epochs"}
    return visdom_server.line(columns, steps, env=env, win=win, opts=options)


def plot_model(
    model: nn.Module,
    size: Sequence[int] = (3, 224, 224),
    input_key: str | list[str] | None = None,
    writer: Any = None,  # noqa: ANN401 - a SummaryWriter
    folder: str = "",
    train: bool = False,
) -> None:
    """Draw a model's graph in TensorBoard.

    Args:
        model: The model.
        size: The shape of one sample.
        input_key: The key under which the model looks for its input.
        writer: A SummaryWriter; without one it is made for ``folder``.
        folder: Where to write without a writer.
        train: Whether to draw the model in training mode.
    """
    if writer is None and not folder:
        raise AssertionError("give a writer, or the folder to write to")
    if writer is None:
        require("tensorboard", extra="tensorboard", who="plot_model")
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(log_dir=folder)
    example = get_model_dummy_input(model, size, input_key)
    mode = train_model(model) if train else eval_model(model)
    with mode, torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Tracing warns about every branch in a model.
        writer.add_graph(model, input_to_model=(example,))
    writer.flush()
