"""iBOT's teacher."""

from tests.vissl.learners import Encoder, TeacherLoss, views
from tests.vissl.phases import train

from hookloop_dialects.vissl.hooks import IBOTHook


def test_output_of_the_teacher_and_epoch_reach_the_loss(tmp_path):
    epochs = []

    def compare(loss, output):
        return (output - loss.teacher_output).square().sum() + output.square().sum()

    loss = TeacherLoss(compare, teacher_momentum=0.9, set_current_epoch=epochs.append)
    parts = {"loss": loss, "train_data": views("views"), "val_data": None}
    train(tmp_path, IBOTHook(), model=Encoder(), max_epochs=2, **parts)
    assert epochs == [0, 0, 0, 1, 1, 1]
