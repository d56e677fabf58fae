import pytest
import torch
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Hook
from hookloop.hooks import DumpOnException


class Fail(Hook):
    def __init__(self, error):
        self.error = error

    def after_backward(self, run):
        if run.progress.iter == 1:
            raise self.error


def fail(tmp_path, hook, error):
    with pytest.raises(type(error)):
        make_trainer(hooks=[hook, Fail(error)], run_dir=tmp_path).train()


def test_text_and_batch_of_the_failure_are_written(tmp_path):
    fail(tmp_path, DumpOnException(), ZeroDivisionError("mine"))
    text = (tmp_path / "exception_iter_1.txt").read_text()
    assert "ZeroDivisionError: mine" in text
    assert "raised by the hook 'fail'" in text
    assert "in train, stream 'train', after 1 iteration and 0 epochs; 1 iteration of" in text
    assert "rss" in text
    assert "batch[0]: float32[4, 4] on cpu" in text
    assert "0.weight.grad: float32[8, 4] on cpu" in text
    dumped = torch.load(tmp_path / "exception_iter_1.pt", weights_only=True)
    assert torch.equal(dumped["batch"][0], list(make_data())[1][0])


def test_what_is_not_finite_is_counted(tmp_path):
    class Spoil(Hook):
        def after_loss(self, run):
            run.model[0].weight.data[0, :3] = float("nan")

    with pytest.raises(ZeroDivisionError):
        make_trainer(
            hooks=[Spoil(), DumpOnException(batch=False), Fail(ZeroDivisionError())],
            run_dir=tmp_path,
        ).train()
    assert (
        "0.weight: float32[8, 4] on cpu, nan to nan, 3 not finite"
        in (tmp_path / "exception_iter_1.txt").read_text()
    )
    assert not (tmp_path / "exception_iter_1.pt").exists()


def test_an_interrupt_is_not_a_failure(tmp_path):
    fail(tmp_path, DumpOnException(), KeyboardInterrupt())
    assert not list(tmp_path.glob("exception*"))


def test_a_failure_before_the_first_batch_is_written_too(tmp_path):
    class Early(Hook):
        def before_train(self, run):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_trainer(hooks=[Early(), DumpOnException()], run_dir=tmp_path).train()
    assert [path.name for path in tmp_path.glob("exception*")] == ["exception_iter_0.txt"]
