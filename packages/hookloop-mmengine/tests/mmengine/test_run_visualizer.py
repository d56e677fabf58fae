import pytest
from tests.tiny import make_trainer

from hookloop_mmengine.hooks import Hook
from hookloop_mmengine.registry import VISUALIZERS
from hookloop_mmengine.visualization import EmittingVisualizer, Visualizer


@pytest.fixture(autouse=True)
def no_instances(monkeypatch):
    monkeypatch.setattr(Visualizer, "_instance_dict", {})


class Drawing(Visualizer):
    def draw_boxes(self):
        return "drawn"


class UseVisualizer(Hook):
    def before_train(self, runner):
        self.current = Visualizer.get_current_instance()
        self.of_runner = runner.visualizer


def train(**options):
    hook = UseVisualizer()
    make_trainer(hooks=[hook], run_dir="run", **options).train()
    assert hook.current is hook.of_runner
    return hook.current


def test_hooks_see_the_visualizer_that_the_project_made():
    own = Drawing.get_instance("mine")
    assert train() is own


def test_hooks_see_the_visualizer_that_the_config_describes():
    VISUALIZERS.register_module(module=Drawing, force=True)
    found = train(setup={"config": {"visualizer": {"type": "Drawing"}}})
    assert found.draw_boxes() == "drawn"


def test_without_one_everything_goes_to_the_writers():
    assert isinstance(train(), EmittingVisualizer)


def test_that_of_an_earlier_runner_does_not_count(run):
    runner = run(limit=1)
    assert runner.visualizer in Visualizer._instance_dict.values()
    assert isinstance(train(), EmittingVisualizer)


def test_a_runner_keeps_the_object_that_it_is_given(run):
    own = Drawing.get_instance("mine")
    hook = UseVisualizer()
    run(hook, limit=1, visualizer=own)
    assert hook.of_runner is own
