"""With the real MMEngine installed: what files import from it does here what it does there.

``make downstream`` runs this in an environment of its own; elsewhere it is skipped.
"""

import collections
import importlib
import pkgutil
import random
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from tests.alike import assert_alike
from torch import nn

from hookloop_mmengine.missing import MISSING

mmengine = pytest.importorskip("mmengine", reason="only `make downstream` installs it")
pytestmark = pytest.mark.filterwarnings("ignore")  # MMEngine warns often.

OURS = "hookloop_mmengine"
REJECTED = ("_strategy", "analysis", "hub", "infer", "testing", "config")


def pair(module):
    return importlib.import_module(f"mmengine.{module}"), importlib.import_module(
        f"{OURS}.{module}"
    )


def both(module, use):
    """The results of a use on the real module and on ours, from the same random numbers."""
    results = []
    for home in pair(module):
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        results.append(use(home))
    return results


def public_names():
    for info in pkgutil.walk_packages(mmengine.__path__, "mmengine."):
        parts = info.name.split(".")
        if parts[1] in REJECTED or parts[1].startswith("_") or not info.ispkg:
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            yield info.name.partition(".")[2], name


def test_each_public_name_is_offered_or_rejected_with_the_graft():
    found, rejected = [], set()
    for module, name in public_names():
        if find_spec(f"{OURS}.{module}") is None:  # The alias names the graft.
            continue
        ours = importlib.import_module(f"{OURS}.{module}")
        if name not in MISSING:
            found.append(getattr(ours, name))
            continue
        with pytest.raises(ImportError, match="--graft mmengine"):
            getattr(ours, name)
        rejected.add(name)
    assert len(found) > 250
    assert len(rejected) < 50


# --- weights --------------------------------------------------------------------------------------


def make_net(home, init_cfg=None, inner_cfg=None):
    class Block(home.BaseModule):
        def __init__(self):
            super().__init__(inner_cfg)
            self.conv, self.norm = nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)

    class Net(home.BaseModule):
        def __init__(self):
            super().__init__(init_cfg)
            self.first, self.second = Block(), Block()
            self.head = nn.Linear(3, 2)
            self.items = home.ModuleDict({"a": nn.Conv1d(1, 1, 1)})

    return Net()


def weights(net):
    return {name: value.tolist() for name, value in net.state_dict().items()}


CONSTANT = {"type": "Constant", "val": 2, "bias": 1, "layer": ["Conv2d", "Linear"]}
INIT_CFGS = {
    "none": None,
    "constant": CONSTANT,
    "base class": {"type": "Constant", "val": 3, "layer": "_ConvNd"},
    "norm": {"type": "Uniform", "a": 0.5, "b": 0.7, "layer": "_BatchNorm"},
    "list": [CONSTANT, {"type": "Normal", "mean": 1, "std": 0.1, "layer": "Linear"}],
    "bias_prob": {"type": "Normal", "std": 0.01, "bias_prob": 0.01, "layer": "Linear"},
    "override": {**CONSTANT, "override": {"type": "Xavier", "name": "head", "bias": 5}},
    "override by name": {**CONSTANT, "override": [{"name": "first"}, {"name": "head"}]},
    "override alone": {"type": "Constant", "val": 9, "override": {"name": "second"}},
    **{
        f"{name} {kind}": {"type": name, "distribution": kind, "layer": ["Conv2d", "Linear"]}
        for name in ("Xavier", "Kaiming")
        for kind in ("normal", "uniform")
    },
    "kaiming": {
        "type": "Kaiming",
        "a": 1,
        "mode": "fan_in",
        "nonlinearity": "leaky_relu",
        "layer": "Conv2d",
    },
    "caffe": {"type": "Caffe2Xavier", "layer": "Conv2d", "bias": 2},
    "truncated": {"type": "TruncNormal", "std": 0.02, "a": -0.03, "b": 0.03, "layer": "Conv2d"},
}


@pytest.mark.parametrize("inner", [None, {"type": "Constant", "val": 7, "layer": "Conv2d"}])
@pytest.mark.parametrize("name", INIT_CFGS)
def test_init_cfg_gives_the_same_weights(name, inner):
    def use(home):
        net = make_net(home, INIT_CFGS[name], inner)
        torch.manual_seed(1)
        net.init_weights()
        once = weights(net)
        net.init_weights()  # A second call does nothing.
        assert weights(net) == once
        return once, net.is_init, net.first.is_init, torch.rand(1).item()

    real, ours = both("model", use)
    assert real == ours


@pytest.mark.parametrize("prefix", [None, "backbone", "backbone."])
@pytest.mark.parametrize("listed", [False, True])
def test_pretrained_weights_are_the_same(tmp_path, prefix, listed):
    source = make_net(pair("model")[0])
    saved = {
        f"{'backbone.' if prefix else 'module.'}{k}": v for k, v in source.state_dict().items()
    }
    torch.save({"state_dict": {**saved, "other.weight": torch.ones(1)}}, tmp_path / "a.pth")
    pretrained = {"type": "Pretrained", "checkpoint": str(tmp_path / "a.pth"), "prefix": prefix}

    def use(home):
        net = make_net(home, [pretrained, CONSTANT] if listed else pretrained, dict(CONSTANT))
        net.init_weights()
        return weights(net)

    real, ours = both("model", use)
    assert real == ours == weights(source)


@pytest.mark.parametrize(
    "config",
    [
        3,
        {"type": "NoSuchInit"},
        {"type": "Constant"},
        {"type": "Constant", "val": 1, "layer": 3},
        {"type": "Constant", "val": 1, "bias": "1"},
        {"type": "Constant", "val": 1, "override": {"type": "Constant", "val": 1}},
        {"type": "Constant", "val": 1, "override": {"name": "head", "val": 1}},
        {"type": "Constant", "val": 1, "override": {"name": "no_such"}},
        {"type": "Constant", "val": 1, "override": 3},
    ],
)
def test_wrong_configs_raise_the_same(config):
    def use(home):
        try:
            home.initialize(make_net(home), config)
        except Exception as error:  # noqa: BLE001 - its type is the result
            return type(error)
        return None

    real, ours = both("model", use)
    assert real is ours is not None


def test_functions_of_models_do_the_same():
    def use(home):
        images = [torch.rand(3, 4, 5), torch.rand(3, 7, 2)]
        return {
            "stacked": home.stack_batch(images, 4, 0.5).tolist(),
            "merged": home.merge_dict({"a": 1}, {"b": 2}),
            "bias": home.bias_init_with_prob(0.3),
        }

    assert_alike(*both("model", use))


# --- data -----------------------------------------------------------------------------------------


def test_structures_are_the_same():
    def use(home):
        data = home.PixelData(
            metainfo={"a": 1}, map=torch.arange(12).reshape(3, 4), other=np.ones((2, 3, 4))
        )
        parts = [data[1, 2], data[-1, 1:3], data[::2, :]]
        return {
            "shape": data.shape,
            "parts": [(one.map.tolist(), one.other.tolist(), one.metainfo) for one in parts],
            "label": home.LabelData.onehot_to_label(torch.tensor([0, 1, 1])).tolist(),
            "onehot": home.LabelData.label_to_onehot(torch.tensor([2, 0]), 3).tolist(),
        }

    real, ours = both("structures", use)
    assert real == ours


# --- files and small functions --------------------------------------------------------------------


def test_files_are_the_same(tmp_path):
    def use(home):
        folder = tmp_path / home.__name__.partition(".")[0]
        value = {"b": [1, 2.5, None], "a": {"c": "gr\u00fcn"}}
        for ending in ("json", "yaml", "pkl"):
            home.dump(value, folder / f"a.{ending}")
        home.dump(np.arange(3), folder / "deep" / "b.json", indent=2)
        home.put_text("a 1\nb 2 3\n", folder / "map.txt")
        return {
            "bytes": {
                ending: home.get(folder / f"a.{ending}") for ending in ("json", "yaml", "pkl")
            },
            "loaded": [home.load(folder / f"a.{ending}") for ending in ("json", "yaml", "pkl")],
            "indented": home.get_text(folder / "deep" / "b.json"),
            "listed": sorted(home.list_dir_or_file(folder, recursive=True)),
            "files": sorted(home.list_dir_or_file(folder, list_dir=False, suffix=(".txt", "pkl"))),
            "joined": home.join_path("./a", "b", "c/"),
            "backend": home.get_file_backend("a").name,
            "client": home.FileClient("disk").isfile(folder / "a.json"),
        }

    real, ours = both("fileio", use)
    assert real == ours


VERSIONS = (
    "1.0 2.1.0 1.10.0+cu113 1.2.3.4.5 1.0rc2 1.0.0b1 1.0a0 1.0.dev3 1.0.post2 v2 1.0-alpha.1 3rc"
).split()


def test_small_functions_are_the_same():
    point = collections.namedtuple("Point", "x y")

    def use(home):
        return {
            "versions": [home.digit_version(text) for text in VERSIONS],
            "tuples": [home.to_2tuple(3), home.to_2tuple([1, 2, 3]), home.to_ntuple(3)("ab")],
            "sliced": home.slice_list([1, 2, 3, 4], [1, 3]) + home.slice_list([1, 2], 1),
            "applied": home.apply_to(
                {"a": [1, (2, point(3, "x"))]},
                lambda one: isinstance(one, int),
                lambda one: one + 1,
            ),
            "absolute": [home.is_abs(path) for path in ("a", "/a", "http://a", "s3://a")],
            "git": home.get_git_hash(),
            "object": home.get_object_from_string("torch.nn.Linear"),
        }

    real, ours = both("utils", use)
    assert real == ours


# --- registries -----------------------------------------------------------------------------------


def test_registries_are_the_same():
    def use(home):
        home.DefaultScope._instance_dict.clear()
        root = home.Registry("thing", scope="root")
        kids = home.Registry("thing", parent=root, scope="kids")
        babies = home.Registry("thing", parent=kids, scope="babies")
        peers = home.Registry("thing", parent=root, scope="peers")

        class Thing:
            def __init__(self, inner=None):
                scope = home.DefaultScope.get_current_instance()
                self.scope = scope.scope_name if scope is not None else None
                self.inner = root.build(inner) if inner else None

        made = {}
        for registry, names in ((root, "A R"), (kids, "A K"), (babies, "B"), (peers, "A P")):
            for name in names.split():
                kind = type(f"{registry.scope}_{name}", (Thing,), {})
                registry.register_module(name=name, module=kind)
        keys = (
            "A R K B P kids.A peers.P root.R kids.R babies.B kids.babies.B no.Such torch.nn.Linear"
        ).split()
        for registry in (root, kids, babies, peers):
            for key in keys:
                found = registry.get(key)
                made[registry.scope, key] = found and found.__name__
        for scope in ("kids", "peers", None):
            with home.DefaultScope.overwrite_default_scope(scope):
                one = root.build({"type": "A", "inner": {"type": "A"}})
                made["built", scope] = type(one).__name__, type(one.inner).__name__, one.scope
        one = root.build({"type": "A", "_scope_": "peers", "inner": {"type": "A"}})
        made["scoped"] = type(one).__name__, type(one.inner).__name__, one.scope
        with babies.switch_scope_and_registry("peers") as found:
            made["switched"] = found.scope
        return made

    real, ours = both("registry", use)
    assert real == ours


# --- schedulers of projects -----------------------------------------------------------------------


def test_schedulers_of_projects_compute_the_same():
    def use(home):
        class Own(home.param_scheduler._ParamScheduler):
            def _get_value(self):
                groups = self.optimizer.param_groups
                return [group[self.param_name] * (0.9 if self.last_step else 1) for group in groups]

        class OwnLR(home.lr_scheduler.LRSchedulerMixin, Own):
            pass

        class OwnMomentum(home.momentum_scheduler.MomentumSchedulerMixin, Own):
            pass

        seen = []
        for make in (lambda w: torch.optim.SGD(w, 1.0, 0.8), lambda w: torch.optim.Adam(w, 1.0)):
            optimizer = make([nn.Parameter(torch.ones(1))])
            schedulers = [OwnLR(optimizer, begin=1, end=4), OwnMomentum(optimizer)]
            for _ in range(5):
                for scheduler in schedulers:
                    scheduler.step()
                group = optimizer.param_groups[0]
                seen.append((group["lr"], group["momentum"], group.get("betas")))
        return seen

    for name in ("param_scheduler", "lr_scheduler", "momentum_scheduler"):
        pair(f"optim.scheduler.{name}")
    assert_alike(*both("optim.scheduler", use))


# --- pictures -------------------------------------------------------------------------------------

DRAWINGS = {
    "nothing": lambda one: one,
    "points": lambda one: one.draw_points(
        torch.tensor([[5, 5], [20, 9]]), ["r", (0, 9, 255)], sizes=np.array([9, 30])
    ),
    "texts": lambda one: one.draw_texts(
        ["ab", "c"], torch.tensor([[5, 5], [30, 20]]), colors=["r", "w"]
    ),
    "lines": lambda one: one.draw_lines(
        torch.tensor([[5, 40]]), torch.tensor([[9, 30]]), line_widths=3
    ),
    "circles": lambda one: one.draw_circles(
        torch.tensor([[20, 20]]), torch.tensor([7]), face_colors="b"
    ),
    "boxes": lambda one: one.draw_bboxes(
        torch.tensor([[3, 3, 30, 20], [9, 9, 50, 30]]), ["r", "y"]
    ),
    "polygons": lambda one: one.draw_polygons(
        torch.tensor([[5, 5], [30, 5], [10, 20]]), face_colors="g"
    ),
    "masks": lambda one: one.draw_binary_masks(
        np.stack([np.eye(40, 60, dtype=bool), np.tri(40, 60, dtype=bool)]),
        ["r", (0, 0, 200)],
        [0.3, 0.8],
    ),
    "all": lambda one: (
        one.draw_bboxes(torch.tensor([3, 3, 30, 20]))
        .draw_texts(
            "x", torch.tensor([3, 3]), font_sizes=9, bboxes={"facecolor": "k", "alpha": 0.5}
        )
        .draw_binary_masks(np.eye(40, 60, dtype=bool))
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_pictures_are_the_same(name):
    image = np.random.default_rng(0).integers(0, 255, (40, 60, 3)).astype(np.uint8)

    def use(home):
        visualizer = home.Visualizer(image=image)
        DRAWINGS[name](visualizer)
        return visualizer.get_image()

    real, ours = both("visualization", use)
    assert np.array_equal(real, ours)
