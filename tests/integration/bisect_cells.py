"""The kinds of trainings that `test_bisect` compares, as scripts would build them."""

import torch

from hookloop import Hook, Update


def make(name, directory):
    """Return the arguments of a Trainer of one kind."""
    from tests.integration.test_replay import CELLS, gan, parts

    if name == "gan":
        given = gan(directory)
    elif name == "own step":
        given = parts(directory)
        loss = given.pop("loss")

        def step(run, batch):
            output = run.model(batch[0])
            return {"loss": loss(output, batch[1]) + 1e-4 * output.square().mean()}

        given["step"] = step
    elif name == "own update":
        given = parts(directory)
        model, loss = given["model"], given.pop("loss")
        given["step"] = Halves(
            "",
            lambda run: model(run.batch[0]),
            lambda run: loss(run.output, run.batch[1]),
            [given["optimizer"]],
        )
    elif name == "logical ranks":
        given = parts(directory) | {"parallel": {"logical": 2}}
    else:
        given = parts(directory, **CELLS.get(name, {}))
    own = list(given.get("hooks") or ())
    return given | {"hooks": own, "max_iters": 20}


class Halves(Update):
    """Adds the gradients of two halves of the loss."""

    def backward(self, loss):
        (loss * 0.5).backward(retain_graph=True)
        (loss * 0.5).backward()


class Fault(Hook):
    name = "fault"
    takes_part_in_training = True
    draws_random_numbers = False

    def after_train_iter(self, run):
        if run.progress.iter == 13:
            with torch.no_grad():
                next(run.model.parameters()).view(-1)[0] += 1e-6


def with_fault(given):
    """Return the arguments with a hook that changes a weight."""
    return given | {"hooks": [*given["hooks"], Fault()]}
