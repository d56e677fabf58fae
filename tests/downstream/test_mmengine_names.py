"""With the real MMEngine installed: what files import from it does here what it does there.

``make downstream`` runs this in an environment of its own; elsewhere it is skipped.
"""

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
    assert len(found) > 200
    assert len(rejected) < 130


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
            "files": sorted(
                home.LocalBackend().list_dir_or_file(folder, list_dir=False, suffix=(".txt", "pkl"))
            ),
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
    def use(home):
        return {
            "versions": [home.digit_version(text) for text in VERSIONS],
            "sequences": [home.is_list_of([1], int), home.is_tuple_of([1], int)],
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


def test_masks_are_the_same():
    image = np.random.default_rng(0).integers(0, 255, (40, 60, 3)).astype(np.uint8)
    masks = np.stack([np.eye(40, 60, dtype=bool), np.tri(40, 60, dtype=bool)])

    def use(home):
        visualizer = home.Visualizer(image=image)
        visualizer.draw_binary_masks(masks, ["r", (0, 0, 200)], [0.3, 0.8])
        return visualizer.draw_binary_masks(masks[0]).get_image()

    real, ours = both("visualization", use)
    assert np.array_equal(real, ours)
