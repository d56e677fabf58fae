import pytest
import torch
from tests.readback import events, tensorboard_points
from tests.tiny import make_classifier

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, WriteTensorBoard


def test_numbers_histograms_gradients_graph_and_hyper_parameters_are_written(tmp_path):
    hook = WriteTensorBoard(every=2, histograms="1 epoch", gradients=True, graph=True)
    make_classifier(
        hooks=[hook], run_dir=tmp_path, max_epochs=2, setup={"config": {"optimizer": {"lr": 0.1}}}
    ).train()
    found = events(tmp_path / "tensorboard")
    tags = found.Tags()
    assert {"train/loss", "lr", "val/loss", "val/accuracy"} <= set(tags["scalars"])
    assert {"parameters/0/weight", "gradients/2/bias"} <= set(tags["histograms"])
    assert [event.step for event in found.Histograms("parameters/0/weight")] == [3, 6]
    assert found.Histograms("parameters/0/weight")[0].histogram_value.num == 32
    assert tags["graph"] and "config/text_summary" in tags["tensors"]


def test_a_resumed_run_hides_the_events_that_it_repeats(tmp_path):
    def train(**options):
        hooks = [WriteTensorBoard(every=1), SaveCheckpoint(every="2 iters", last=False)]
        make_classifier(hooks=hooks, run_dir=tmp_path, **options).train()

    train(max_iters=5)
    train(max_epochs=2, resume=True)
    steps = [step for step, _ in tensorboard_points(tmp_path / "tensorboard", "val/loss")]
    assert steps == [3, 6]


def test_drawing_the_graph_does_not_change_the_training(tmp_path):
    def train(name, **options):
        trainer = make_classifier(
            hooks=[WriteTensorBoard(every=1, histograms=1, gradients=True, **options)],
            run_dir=tmp_path / name,
            seed=1,
        )
        trainer.train()
        return trainer.run.model.state_dict()

    plain, drawn = train("plain"), train("drawn", graph=True)
    assert all(torch.equal(plain[name], drawn[name]) for name in plain)


@pytest.mark.parametrize(("every", "histograms"), [(50, 75), ("1 min", 50), (50, "1 min")])
def test_histograms_that_would_never_be_due_are_rejected(every, histograms):
    with pytest.raises(HookError, match="in epochs, or in iterations as a multiple of every"):
        WriteTensorBoard(every=every, histograms=histograms)
