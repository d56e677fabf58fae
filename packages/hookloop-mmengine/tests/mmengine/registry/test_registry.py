"""Classes by name, from child to parent."""

import sys
from types import ModuleType

import pytest
import torch

from hookloop_mmengine import registry as module
from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.registry import (
    DATA_SAMPLERS,
    HOOKS,
    LOG_PROCESSORS,
    METRICS,
    MODELS,
    OPTIM_WRAPPERS,
    OPTIMIZERS,
    PARAM_SCHEDULERS,
    RUNNERS,
    VISBACKENDS,
    DefaultScope,
    Registry,
    build_from_cfg,
    init_default_scope,
    register_all_modules,
)


class Thing:
    def __init__(self, size=0, **options):
        self.size, self.options = size, options


@pytest.fixture
def things():
    registry = Registry("thing", scope="toys")
    registry.register_module(module=Thing)
    return registry


def test_a_class_is_registered_by_a_decorator_or_at_once(things):
    @things.register_module()
    class One: ...

    @things.register_module(name=("two", "deux"))
    class Two: ...

    def three():
        return 3

    assert things.register_module(name="three", module=three) is three
    assert things.get("One") is One
    assert things.get("deux") is things.get("two") is Two
    assert sorted(things) == ["One", "Thing", "deux", "three", "two"]
    assert len(things) == 5
    assert "One" in things
    assert "Four" not in things
    assert repr(things).startswith("Registry(thing: Thing, One")
    assert things.module_dict["One"] is One
    assert things.name == "thing"


def test_a_name_is_registered_once_unless_forced(things):
    with pytest.raises(KeyError, match="Thing is already registered in thing at"):
        things.register_module(module=Thing)

    class Other: ...

    things.register_module(name="Thing", module=Other, force=True)
    assert things.get("Thing") is Other


@pytest.mark.parametrize(
    "options", [{"force": 1}, {"name": 3}, {"module": 3}, {"name": [3]}], ids=str
)
def test_wrong_arguments_are_rejected(things, options):
    with pytest.raises(TypeError):
        things.register_module(**options)
    with pytest.raises(TypeError, match="must be a str"):
        things.get(3)


def test_a_config_is_built_and_not_changed(things):
    cfg = {"type": "Thing", "size": 3, "color": "red"}
    thing = things.build(cfg, default_args={"size": 1, "shape": "round"})
    assert (thing.size, thing.options) == (3, {"color": "red", "shape": "round"})
    assert cfg == {"type": "Thing", "size": 3, "color": "red"}
    assert things.build({"type": Thing}).size == 0
    assert things.build({}, default_args={"type": "Thing"}).size == 0


@pytest.mark.parametrize(
    ("cfg", "error", "message"),
    [
        (3, TypeError, "cfg should be a dict, ConfigDict or Config, but got <class 'int'>"),
        ({"size": 3}, KeyError, 'must contain the key "type"'),
        ({"type": 3}, TypeError, "type must be a str or valid type"),
        ({"type": "Thign"}, KeyError, "Thign is not in the toys::thing registry.*'Thing'"),
        ({"type": "zebra"}, KeyError, "custom_imports"),
    ],
)
def test_a_wrong_config_is_rejected(things, cfg, error, message):
    with pytest.raises(error, match=message):
        build_from_cfg(cfg, things)


def test_a_named_object_is_made_once(things):
    class Named:
        made: dict = {}  # noqa: RUF012

        @classmethod
        def get_instance(cls, name, **kwargs):
            return cls.made.setdefault(name, (name, kwargs))

    things.register_module(module=Named)
    first = things.build({"type": "Named", "name": "a", "size": 1})
    assert things.build({"type": "Named", "name": "a"}) is first


def test_a_child_is_asked_before_its_parent(things):
    child = Registry("thing", parent=things, scope="kids")

    class ChildThing: ...

    child.register_module(name="Thing", module=ChildThing)
    assert child.get("Thing") is ChildThing
    assert things.get("Thing") is Thing
    assert things.get("kids.Thing") is ChildThing
    assert child.get("toys.Thing") is Thing
    assert child.get("kids.Thing") is ChildThing
    assert things.children == {"kids": child}
    sibling = Registry("thing", parent=things, scope="others")
    assert sibling.get("Thing") is Thing


def test_a_child_builds_as_its_parent_does(things):
    special = Registry("thing", build_func=lambda cfg, registry: ("special", cfg), scope="a")
    child = Registry("thing", parent=special, scope="b")
    assert child.build(3) == ("special", 3)


def test_the_scope_is_the_package_that_creates_a_registry():
    namespace = {"__name__": "toyproject.registry", "Registry": Registry}
    exec("made = Registry('thing')", namespace)
    assert namespace["made"].scope == "toyproject"
    assert HOOKS.scope == "mmengine"


def test_locations_are_imported_when_a_name_is_not_found(tmp_path, monkeypatch, things):
    (tmp_path / "toy_location.py").write_text("LOADED = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("thing", parent=things, scope="lazy", locations=["toy_location"])
    registry.register_module(name="own", module=Thing)
    assert registry.get("own") is Thing
    assert "toy_location" not in sys.modules
    assert registry.get("Thing") is Thing
    assert sys.modules.pop("toy_location").LOADED


@pytest.mark.parametrize(
    ("registry", "name"),
    [
        (HOOKS, "EMAHook"),
        (LOG_PROCESSORS, "LogProcessor"),
        (OPTIMIZERS, "AdamW"),
        (OPTIM_WRAPPERS, "AmpOptimWrapper"),
        (PARAM_SCHEDULERS, "CosineAnnealingLR"),
        (DATA_SAMPLERS, "InfiniteSampler"),
        (DATA_SAMPLERS, "RandomSampler"),
        (MODELS, "BaseDataPreprocessor"),
        (MODELS, "Linear"),
        (METRICS, "DumpResults"),
        (VISBACKENDS, "TensorboardVisBackend"),
    ],
)
def test_names_of_mmengine_and_torch_are_there(registry, name):
    assert registry.get(name).__name__ == name
    assert registry.get(f"mmengine.{name}").__name__ == name


def test_a_class_is_found_by_its_path():
    assert MODELS.get("torch.nn.Linear") is torch.nn.Linear
    assert MODELS.build({"type": "torch.nn.Linear", "in_features": 1, "out_features": 2})
    assert MODELS.get("torch.nn.NoSuchLayer") is None
    assert MODELS.get("no_such_package.Layer") is None


def test_a_list_of_models_is_a_sequence():
    cfg = {"type": "Linear", "in_features": 2, "out_features": 2}
    model = MODELS.build([cfg, {"type": "ReLU"}])
    assert [type(layer).__name__ for layer in model] == ["Linear", "ReLU"]


def test_epochs_of_a_scheduler_become_iterations():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    cfg = {"type": "StepLR", "step_size": 2, "convert_to_iter_based": True}
    arguments = {"optimizer": optimizer, "epoch_length": 5}
    scheduler = PARAM_SCHEDULERS.build(cfg, default_args=arguments)
    assert (scheduler.step_size, scheduler.by_epoch) == (10, False)


def test_a_runner_of_ones_own_is_built():
    class ToyRunner:
        @classmethod
        def from_cfg(cls, cfg):
            return cls, cfg["a"]

    RUNNERS.register_module(module=ToyRunner)
    try:
        assert RUNNERS.build({"runner_type": "ToyRunner", "a": 3}) == (ToyRunner, 3)
    finally:
        del RUNNERS.module_dict["ToyRunner"]


def test_the_default_scope_is_searched_first(things):
    child = Registry("thing", parent=things, scope="kids")

    class ChildThing: ...

    child.register_module(name="Thing", module=ChildThing)
    assert DefaultScope.get_current_instance() is None
    assert things.find("Thing") is Thing
    init_default_scope("kids")
    assert DefaultScope.get_current_instance().scope_name == "kids"
    assert things.find("Thing") is ChildThing
    assert things.find("Thing", scope="toys") is Thing
    assert things.build({"type": "Thing", "_scope_": "toys"}).size == 0
    register_all_modules()


def test_hooks_of_a_project_are_found_by_the_default_scope(run, monkeypatch):
    project, hooks = ModuleType("toyproject"), ModuleType("toyproject.hooks")
    project.__path__ = []
    project.__spec__ = __import__("importlib.machinery").machinery.ModuleSpec("toyproject", None)
    registry = ModuleType("toyproject.registry")
    for part in (project, hooks, registry):
        monkeypatch.setitem(sys.modules, part.__name__, part)
    registry.__dict__["Registry"], registry.__dict__["PARENT"] = Registry, HOOKS
    exec("TOYS = Registry('hook', parent=PARENT, locations=['toyproject.hooks'])", vars(registry))
    try:

        @registry.TOYS.register_module()
        class IterTimerHook(Hook):
            """Has the name of one of MMEngine's; the project's own comes first."""

        runner = run({"type": "IterTimerHook"}, default_scope="toyproject", limit=1)
        assert isinstance(runner.hooks[-1], IterTimerHook)
    finally:
        HOOKS._children.pop("toyproject", None)


def test_all_of_mmengines_registries_are_there():
    names = """RUNNERS RUNNER_CONSTRUCTORS LOOPS HOOKS LOG_PROCESSORS OPTIMIZERS OPTIM_WRAPPERS
        OPTIM_WRAPPER_CONSTRUCTORS PARAM_SCHEDULERS DATASETS DATA_SAMPLERS TRANSFORMS MODELS
        MODEL_WRAPPERS WEIGHT_INITIALIZERS BATCH_AUGMENTS TASK_UTILS METRICS EVALUATOR VISUALIZERS
        VISBACKENDS FUNCTIONS INFERENCERS"""
    for name in names.split():
        assert isinstance(getattr(module, name), Registry), name


def test_the_registry_of_a_scope_is_yielded(things, caplog):
    child = Registry("thing", parent=things, scope="kids")
    grandchild = Registry("thing", parent=child, scope="babies")
    with things.switch_scope_and_registry("babies") as found:
        assert found is grandchild
        assert DefaultScope.get_current_instance().scope_name == "babies"
        with child.switch_scope_and_registry(None) as same:
            assert same is grandchild
    with things.switch_scope_and_registry(None) as found:
        assert found is things
    with child.switch_scope_and_registry("toys") as found:
        assert found is things
    with child.switch_scope_and_registry("strangers") as found:
        assert found is child
    assert "no registry of the scope 'strangers', so that of 'kids' is used" in caplog.text
    assert grandchild.root is child.root is things


def test_a_sibling_is_found_by_its_scope(things):
    first = Registry("thing", parent=things, scope="first")
    second = Registry("thing", parent=things, scope="second")
    second.register_module(name="Own", module=Thing)
    assert first.get("second.Own") is Thing
    assert first.get("Own") is None
    # Only in that scope, and not in its parents.
    assert first.get("first.Own") is None


def test_registries_of_a_project_are_imported_by_its_scope(tmp_path, monkeypatch, things):
    package = tmp_path / "toy_scope"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "registry.py").write_text(
        "from hookloop_mmengine.registry import Registry, TASK_UTILS\n"
        "UTILS = Registry('task util', parent=TASK_UTILS)\n"
        "UTILS.register_module(name='Own', module=dict)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert module.TASK_UTILS.get("toy_scope.Own") is dict
    finally:
        module.TASK_UTILS.children.pop("toy_scope", None)
        for name in ("toy_scope", "toy_scope.registry"):
            sys.modules.pop(name, None)


def test_what_a_project_lacks_itself_is_an_error(tmp_path, monkeypatch, things):
    package = tmp_path / "toy_broken"
    package.mkdir()
    (package / "__init__.py").write_text("import no_such_package_of_it\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_package_of_it"):
        things.get("toy_broken.Own")
