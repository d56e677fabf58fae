"""One object in front of all backends."""

import pytest
import torch
from tests.tiny import make_trainer

from hookloop.engine.hook import Hook
from hookloop.hooks import WriteTo
from hookloop.writers.base import Writer
from hookloop.writers.records import Image, Scalars
from hookloop_mmengine.visualization import (
    BaseVisBackend,
    EmittingVisualizer,
    LocalVisBackend,
    Visualizer,
)


class Noting(BaseVisBackend):
    def __init__(self):
        super().__init__()
        self.calls = []

    def add_config(self, config, **kwargs):
        self.calls.append(("config", config))

    def add_graph(self, model, data_batch, **kwargs):
        self.calls.append(("graph", model))

    def add_image(self, name, image, step=0, **kwargs):
        self.calls.append(("image", name, step))

    def add_scalar(self, name, value, step=0, **kwargs):
        self.calls.append(("scalar", name, value, step))

    def add_scalars(self, scalar_dict, step=0, file_path=None, **kwargs):
        self.calls.append(("scalars", scalar_dict, step, file_path))

    def close(self):
        self.calls.append(("close",))


class Other(Noting): ...


def test_everything_goes_to_every_backend():
    first, second = Noting(), Other()
    visualizer = Visualizer(vis_backends=[first, second])
    visualizer.add_config("cfg")
    visualizer.add_graph("model", None)
    visualizer.add_image("i", None, 1)
    visualizer.add_scalar("s", 2, 3)
    visualizer.add_scalars({"a": 1}, 4, "f.json")
    visualizer.add_datasample("d", None, "sample", step=5)
    visualizer.close()
    assert first.calls == second.calls == [
        ("config", "cfg"), ("graph", "model"), ("image", "i", 1), ("scalar", "s", 2, 3),
        ("scalars", {"a": 1}, 4, "f.json"), ("image", "d", 5), ("close",),
    ]  # fmt: skip
    assert visualizer.get_backend("Other") is second


def test_backends_are_described(tmp_path):
    visualizer = Visualizer(vis_backends={"type": "LocalVisBackend"}, save_dir=str(tmp_path))
    visualizer.add_scalar("a", 1)
    assert isinstance(visualizer.get_backend("LocalVisBackend"), LocalVisBackend)
    assert (tmp_path / "vis_data" / "scalars.json").is_file()


def test_a_backend_without_a_directory_is_dropped(tmp_path):
    assert Visualizer(vis_backends=[{"type": "LocalVisBackend"}])._vis_backends == {}
    own = {"type": "LocalVisBackend", "save_dir": str(tmp_path / "own")}
    Visualizer(vis_backends=[own]).add_scalar("a", 1)
    assert (tmp_path / "own" / "scalars.json").is_file()
    assert Visualizer()._vis_backends == {}


def test_it_is_found_by_its_name(monkeypatch):
    monkeypatch.setattr(Visualizer, "_instance_dict", {})
    with pytest.raises(RuntimeError, match="call get_instance"):
        Visualizer.get_current_instance()
    visualizer = Visualizer.get_instance("a")
    assert Visualizer.get_current_instance() is visualizer
    visualizer.dataset_meta = {"classes": 1}
    assert Visualizer.get_instance("a").dataset_meta == {"classes": 1}


class Memory(Writer):
    name = "memory"

    def __init__(self):
        self.records = []

    def write(self, records):
        self.records += records


def test_a_run_writes_what_it_gets(tmp_path):
    class Show(Hook):
        def after_train_iter(self, run):
            visualizer = EmittingVisualizer(run)
            visualizer.add_scalar("a", torch.tensor(2.0), step=5)
            visualizer.add_scalars({"b": 1})
            visualizer.add_image("i", torch.zeros(1, 1, 3), step=7)

    memory = Memory()
    hooks = [Show(), WriteTo(memory)]
    make_trainer(hooks=hooks, max_iters=1, run_dir=tmp_path / "run").train()
    scalars = [record for record in memory.records if isinstance(record, Scalars)]
    found = [
        (name, value, record.step) for record in scalars for name, value in record.values.items()
    ]
    assert {("a", 2.0, 5), ("b", 1.0, 1)} <= set(found)
    (image,) = [record for record in memory.records if isinstance(record, Image)]
    assert (image.name, image.step) == ("i", 7)


def test_a_subclass_is_the_current_visualizer_of_all(monkeypatch):
    class Own(Visualizer):
        pass

    monkeypatch.setattr(Visualizer, "_instance_dict", {})
    own = Own.get_instance("own")
    assert Visualizer.get_current_instance() is own
    assert Own.get_current_instance() is own
    assert own.get_backend("NoSuchBackend") is None
