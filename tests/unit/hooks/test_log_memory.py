import pytest
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop.hooks import LogMemory


def test_memory_is_recorded_at_the_interval(tmp_path):
    trainer = make_trainer(hooks=[LogMemory(every=2)], max_epochs=2, run_dir=tmp_path)
    trainer.train()
    series = trainer.run.metrics.series("train/memory/rss")
    assert len(series.recent) == 3
    assert 1 < series.latest <= trainer.run.metrics.latest("train/memory/rss_peak")


def test_summaries_are_written_at_given_iterations(tmp_path):
    hook = LogMemory(every=100, summary_at=[1, 4])
    make_trainer(hooks=[hook], max_epochs=2, run_dir=tmp_path).train()
    assert {path.name for path in tmp_path.glob("memory_*")} == {
        "memory_iter_1.txt",
        "memory_iter_4.txt",
    }
    assert "rss" in (tmp_path / "memory_iter_4.txt").read_text()


@pytest.mark.parametrize(
    "arguments", [{"summary_at": [0]}, {"every": "2 epochs"}, {"every": "1 s"}]
)
def test_wrong_arguments_are_rejected(arguments):
    with pytest.raises(HookError):
        LogMemory(**arguments)
