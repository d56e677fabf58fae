import math

import pytest
import torch
from tests.tiny import make_classifier, make_trainer

from hookloop.errors import HookError, MetricError
from hookloop.hooks import ComputeStats


def test_statistics_are_those_of_all_batches():
    trainer = make_classifier(hooks=[ComputeStats([{"loss": ["mean", "max"]}, "targets"])])
    trainer.train()
    metrics = trainer.run.metrics
    assert metrics.latest("train/loss/mean") == pytest.approx(metrics.mean("train/loss"), rel=1e-6)
    assert metrics.latest("train/loss/max") >= metrics.latest("train/loss/mean")
    targets = torch.cat([batch[1] for batch in trainer.run.val_data[""]]).double()
    assert metrics.latest("val/targets/mean") == pytest.approx(targets.mean().item())


def test_nan_can_be_counted():
    def step(run, batch):
        loss = run.model(batch[0]).mean()
        return {"loss": loss, "x": torch.tensor([1.0, math.nan, 3.0, math.nan])}

    stats = ["nancount", "nanfraction", "nanmean", "mean"]
    trainer = make_trainer(hooks=[ComputeStats({"x": stats})], step=step)
    trainer.train()
    found = {name: trainer.run.metrics.latest(f"train/x/{name}") for name in stats[:3]}
    assert found == {"nancount": 6, "nanfraction": 0.5, "nanmean": 2}
    assert math.isnan(trainer.run.metrics.latest("train/x/mean"))


def test_a_hook_may_watch_what_it_computes():
    from hookloop.hooks import WriteTo
    from hookloop.writers.base import Multi

    watch = WriteTo(Multi(), metrics=["val/loss/median"])
    make_classifier(hooks=[ComputeStats({"loss": ["median"]}), watch]).check()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"loss": ["meen"]},
            r"'meen', requested for 'loss', is not a NumPy function .* Did you mean 'mean'",
        ),
        (
            {"loss": ["sort"]},
            "'sort', requested for 'loss', is not a NumPy function that turns an array",
        ),
        ({"loss": ["concatenate"]}, "'concatenate', requested for 'loss'"),
        ("loss", r"write variables=\['loss'\]"),
        ([], "variables is empty"),
    ],
)
def test_what_cannot_be_computed_is_rejected(variables, message):
    with pytest.raises(HookError, match=message):
        ComputeStats(variables)


def test_a_number_in_the_output_is_a_variable():
    def step(run, batch):
        return {"loss": run.model(batch[0]).mean(), "scale": 2.5}

    trainer = make_trainer(hooks=[ComputeStats(["scale"])], step=step)
    trainer.train()
    assert trainer.run.metrics.latest("train/scale/mean") == 2.5


def test_text_has_no_statistics():
    def step(run, batch):
        return {"loss": run.model(batch[0]).mean(), "names": ["a", "b"]}

    with pytest.raises(MetricError, match="'names'.*<U1"):
        make_trainer(hooks=[ComputeStats(["names"])], step=step).train()
