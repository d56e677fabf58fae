"""What several tests of Pointrix's dialect use."""

import torch
from tests.tiny import make_trainer

from hookloop_dialects.pointrix import Hook, Writer

LOOP = [
    "before_run", "before_train", "before_train_iter", "after_train_iter", "before_val",
    "before_val_iter", "after_val_iter", "after_val", "after_train",
]  # fmt: skip


def tracing(methods=LOOP):
    def at(method):
        return lambda self, trainner: self.calls.append((method, trainner.global_step))

    kind = type("Trace", (Hook,), {method: at(method) for method in methods})
    kind.calls = []
    return kind()


def train(tmp_path, *hooks, **options):
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path / "run", **options)
    trainer.train()
    return trainer


class Cloud(torch.nn.Module):
    """A model with a point cloud, as those of Pointrix have one."""

    def __init__(self):
        super().__init__()
        self.point_cloud = torch.nn.ParameterList([torch.zeros(3) for _ in range(5)])

    def save_ply(self, path): ...


class Kept(Writer):
    """A writer that keeps what it is given."""

    def __init__(self):
        super().__init__("")
        self.scalars = []
        self.images = []

    def write_scalar(self, name, scalar, step):
        self.scalars.append((name, round(float(scalar), 6), step))

    def write_image(self, name, image, step, caption=None):
        self.images.append((name, tuple(image.shape), step))

    def write_config(self, name, config_dict, step): ...


class Give(Hook):
    """Gives the trainer a writer, as Pointrix's own constructor does."""

    def __init__(self, writer):
        self.writer = writer

    def before_run(self, trainner):
        trainner.writer = self.writer


def train_cloud(tmp_path, *hooks, **options):
    model = Cloud()

    def step(run, batch):
        points = torch.stack(list(model.point_cloud))
        found = {"loss": (points - 1).square().mean(), "optimizer_params": {"grads": 1}}
        if run.phase == "val":
            found |= {"psnr": torch.tensor(float(batch)), "images": torch.zeros(3, 4, 6)}
        return found

    groups = [{"params": model.parameters(), "name": "point_cloud.position", "lr": 0.5}]
    return train(
        tmp_path,
        *hooks,
        model=model,
        train_data=[0, 1, 2, 3],
        step=step,
        optimizer=torch.optim.SGD(groups),
        **options,
    )
