"""Files in iMIX's own form."""

import pytest
import torch
from tests.imix.tracing import train
from tests.tiny import assert_same_bits, make_model

from hookloop_dialects.imix import HookBase
from hookloop_dialects.imix.utils.checkpoint import Checkpointer, PeriodicCheckpointer


class Keep(PeriodicCheckpointer, HookBase):
    """Writes files after iterations or epochs, as iMIX's own hook."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.names = []

    def before_train(self):
        self.max_iter, self.max_epoch = self.trainer.max_iter, self.trainer.max_epoch

    def after_train_iter(self):
        if not self.trainer.by_epoch:
            self.names.append(self.record_iter_checkpoint(self.trainer.iter, "m", by_epoch=False))

    def after_train_epoch(self):
        state = {"epoch_iter": self.trainer.iter, "is_epoch": True}
        self.names.append(self.record_epoch_checkpoint(self.trainer.epoch, "m", **state))


def make(tmp_path, **options):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    folder = str(tmp_path / "files")
    hook = Keep(Checkpointer(model, folder, optimizer=optimizer), **options)
    return hook, {"model": model, "optimizer": optimizer}


@pytest.mark.parametrize(
    ("options", "limits", "names", "left"),
    [
        ({"iter_period": 2}, {"max_iters": 5}, [1, 3], [1, 3]),
        ({"iter_period": 1, "max_num_checkpoints": 2}, {"max_iters": 4}, [0, 1, 2, 3], [2, 3]),
        ({"epoch_period": 2}, {"max_epochs": 3}, [1], [1]),
    ],
)
def test_files_come_at_the_period_and_at_the_end(options, limits, names, left, tmp_path):
    hook, parts = make(tmp_path, **options)
    train(tmp_path, hook, **parts, **limits)
    form = "m_iter{:07d}_model.pth" if "max_iters" in limits else "m_epoch{}_model.pth"
    assert [name for name in hook.names if name] == [form.format(name) for name in names]
    files = {path.name for path in (tmp_path / "files").iterdir()}
    assert files == {*(form.format(name) for name in left), "m_model_final.pth"}


def test_a_file_within_an_epoch_has_its_iteration(tmp_path):
    hook, _ = make(tmp_path)
    assert hook.record_epoch_checkpoint(2, "m", epoch_iter=7, is_epoch=False) == (
        "m_epoch2_iter8_model.pth"
    )


def test_a_file_holds_weights_and_states_and_is_loaded(tmp_path):
    hook, parts = make(tmp_path)
    train(tmp_path, hook, **parts)
    path = str(tmp_path / "files" / "m_model_final.pth")
    model = make_model(seed=5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    reader = Checkpointer(model, optimizer=optimizer)
    assert reader.resume_or_load(path) == {"epoch": 0, "epoch_iter": 3}
    assert_same_bits(model, parts["model"])
    assert optimizer.param_groups[0]["lr"] == 0.05
    optimizer.param_groups[0]["lr"] = 7
    assert "optimizer" in reader.resume_or_load(path, resume=False)
    assert optimizer.param_groups[0]["lr"] == 7


def test_weights_that_do_not_fit_are_named(tmp_path, caplog):
    torch.save({"module.0.weight": torch.zeros(3), "x": torch.zeros(1)}, tmp_path / "a.pth")
    with caplog.at_level("WARNING", "imix"):
        Checkpointer(make_model()).load_checkpoint(str(tmp_path / "a.pth"))
    assert caplog.messages[0] == "Weights that have another shape in the file: 0.weight."
    assert "are not in the file: 0.bias" in caplog.text
    assert "of the file are not in the model: x" in caplog.text


def test_what_is_wrong_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="There is no checkpoint"):
        Checkpointer(make_model()).load_checkpoint(str(tmp_path / "none.pth"))
    with pytest.raises(AssertionError, match="is not a Checkpointer"):
        PeriodicCheckpointer(None)
    with pytest.raises(AssertionError, match="max_iter is not above 0"):
        PeriodicCheckpointer(Checkpointer(make_model()), max_iter=0)


def test_nothing_is_written_without_a_directory_or_on_demand(tmp_path):
    Checkpointer(make_model()).save("a")
    quiet = Checkpointer(make_model(), str(tmp_path), is_save_disk=False)
    quiet.save("a")
    quiet.remove_first_from_checkpoint()
    assert not list(tmp_path.iterdir())


def test_the_final_file_is_never_removed(tmp_path):
    writer = Checkpointer(torch.nn.DataParallel(make_model()), str(tmp_path))
    writer.save("m_model_final")
    writer.remove_first_from_checkpoint()
    saved = torch.load(tmp_path / "m_model_final.pth", weights_only=True)
    assert "0.weight" in saved["model"]
