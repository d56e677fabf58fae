import pytest
import torch
from tests.names import iter_file
from tests.tiny import make_trainer
from torch import nn

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks import ResizeInputs, SaveCheckpoint


class Shapes(Hook):
    priority = 60

    def __init__(self):
        self.seen = []

    def before_forward(self, run):
        images = run.batch[0] if isinstance(run.batch, (tuple, list)) else run.batch["image"]
        self.seen.append((run.phase, *images.shape[2:]))


def train(hook, run_dir, *, batches=None, **options):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3)
    )
    images = torch.randn(8, 4, 1, 16, 12, generator=torch.Generator().manual_seed(1))
    given = [(one, torch.arange(4) % 3) for one in images] if batches is None else batches
    shapes = Shapes()
    parts = {
        "train_data": given, "val_data": given[:1], "loss": nn.functional.cross_entropy,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "max_epochs": 1,
    }  # fmt: skip
    hooks = [hook, shapes, *options.pop("hooks", [])]
    trainer = make_trainer(model=model, hooks=hooks, run_dir=run_dir, **(parts | options))
    trainer.train()
    return shapes.seen, model, given


def test_images_grow_and_the_validation_sees_them_whole(tmp_path):
    seen, _, given = train(ResizeInputs(4, start=0.5), tmp_path)
    sizes = [(8, 8), (8, 8), (12, 8), (16, 12), *[(16, 12)] * 4]
    assert [shape[1:] for shape in seen if shape[0] == "train"] == sizes
    assert [shape[1:] for shape in seen if shape[0] == "val"] == [(16, 12)]
    assert given[0][0].shape == (4, 1, 16, 12)  # What the user holds is not changed.


def test_epochs_count_and_a_resume_has_the_same_bits(tmp_path):
    hooks = [SaveCheckpoint(every="3 iters", keep=None)]
    _, whole, _ = train(ResizeInputs("2 epochs"), tmp_path / "a", max_epochs=3, hooks=hooks)
    seen, again, _ = train(
        ResizeInputs("2 epochs"), tmp_path / "b", max_epochs=3,
        resume=str(tmp_path / "a" / iter_file(6)),
    )  # fmt: skip
    assert seen[0] == ("train", 8, 8)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ResizeInputs(5, start=1.0), "start=1.0"),
        (lambda: ResizeInputs(5, multiple=0), "multiple=0"),
        (lambda: ResizeInputs("5 min"), "until counts iterations or epochs"),
    ],
)
def test_arguments_are_checked(make, message):
    with pytest.raises(HookError, match=message):
        make()


def test_other_inputs_are_rejected(tmp_path):
    with pytest.raises(HookError, match=r"ResizeInputs.*float32\[4, 5\]"):
        train(ResizeInputs(4), tmp_path, batches=[(torch.ones(4, 5), torch.arange(4) % 3)])
