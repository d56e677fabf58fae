"""Which signals are handled, and what a second one does; real processes get them in test_ends."""

import os
import signal
import time

import pytest
from tests.names import iter_file
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, StopOnSignal
from hookloop.outcome import Interrupted
from hookloop.parallel.signals import STOP_SIGNALS


def interrupt(tmp_path, *names, hook=None, others=()):
    """Train, receive the signals in the fourth iteration, and return the outcome."""
    trainer = make_trainer(
        hooks=[hook or StopOnSignal(), SaveCheckpoint(), *others], max_epochs=3, run_dir=tmp_path
    )

    @trainer.on("after_backward")
    def send(run):
        if run.progress.iter == 3:
            for name in names:
                os.kill(os.getpid(), signal.Signals[name])

    with pytest.raises(Interrupted) as ended:
        trainer.train()
    return ended.value.outcome


@pytest.mark.parametrize("name", STOP_SIGNALS)
def test_each_signal_saves_and_ends_normally(tmp_path, name):
    before = signal.getsignal(signal.Signals[name])
    outcome = interrupt(tmp_path, name)
    assert (outcome.status, outcome.exit_code) == ("interrupted", 128 + signal.Signals[name])
    assert outcome.reason == f"{name} was received"
    assert (tmp_path / iter_file(4)).is_file()
    assert signal.getsignal(signal.Signals[name]) is before  # Restored when the run has ended.


@pytest.mark.parametrize(
    "names",
    [
        ("SIGHUP", "SIGHUP"),  # A shell and the system both send it.
        ("SIGXCPU", "SIGXCPU", "SIGXCPU"),  # It comes every second.
        ("SIGUSR1", "SIGTERM"),  # A cluster's warning, and then its time limit.
        ("SIGUSR1", "SIGUSR1"),
    ],
)
def test_signals_that_are_repeated_by_the_system_do_not_prevent_the_save(tmp_path, names, caplog):
    outcome = interrupt(tmp_path, *names)
    assert outcome.reason == f"{names[0]} was received"
    assert (tmp_path / iter_file(4)).is_file()
    assert caplog.text.count(f"{names[0]}: ending after this iteration") == 1


@pytest.mark.parametrize("names", [("SIGINT", "SIGINT"), ("SIGUSR1", "SIGINT", "SIGINT")])
def test_a_repeated_signal_ends_the_run_at_once(tmp_path, names):
    with pytest.raises(KeyboardInterrupt):
        interrupt(tmp_path, *names)
    assert not (tmp_path / iter_file(4)).exists()


@pytest.mark.parametrize(
    ("names", "follows"),
    [("SIGUSR1", "SIGUSR1"), ("SIGUSR1", "SIGTERM"), ("SIGHUP", "SIGHUP"), ("SIGTERM", "SIGHUP")],
)
def test_signals_that_are_repeated_by_the_system_do_not_interrupt_the_last_hooks(
    tmp_path, names, follows
):
    class Last(Hook):
        priority = 100
        has_ended = False

        def after_run(self, run):
            os.kill(os.getpid(), signal.Signals[follows])
            self.has_ended = True

    last = Last()
    before = signal.getsignal(signal.Signals[follows])
    outcome = interrupt(tmp_path, names, others=[last])
    assert outcome.reason == f"{names} was received"
    assert last.has_ended
    assert signal.getsignal(signal.Signals[follows]) is before


@pytest.mark.parametrize("names", [(), ("SIGINT",), ("SIGUSR1", "SIGINT")])
def test_ctrl_c_ends_hooks_that_hang_at_the_end(tmp_path, names):
    class Hangs(Hook):
        def after_run(self, run):
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("the signal did not end it")  # Instead of really hanging.

    with pytest.raises(KeyboardInterrupt):
        interrupt(tmp_path, *names, others=[Hangs()])


@pytest.fixture
def handled(request):
    """A signal that the program has a handler for."""
    name, handler = request.param
    before = signal.signal(signal.Signals[name], handler)
    yield signal.Signals[name]
    signal.signal(signal.Signals[name], before)


@pytest.mark.parametrize(
    "handled",
    [("SIGHUP", signal.SIG_IGN), ("SIGUSR1", lambda number, frame: None)],
    indirect=True,
)
def test_handlers_of_the_program_stay(tmp_path, handled):
    trainer = make_trainer(hooks=[StopOnSignal()], run_dir=tmp_path)
    trainer.on("after_backward")(lambda run: os.kill(os.getpid(), handled))
    assert trainer.train().status == "completed"


@pytest.mark.parametrize("handled", [("SIGUSR1", lambda number, frame: None)], indirect=True)
def test_a_signal_that_the_user_names_is_handled(tmp_path, handled):
    assert interrupt(tmp_path, "SIGUSR1", hook=StopOnSignal(["SIGUSR1"])).signal == handled


def test_a_forked_child_dies_of_a_signal_as_without_a_run(tmp_path):
    trainer = make_trainer(hooks=[StopOnSignal()], run_dir=tmp_path)
    ends = []

    @trainer.on("after_train_iter")
    def fork(run):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, b"!")  # The child is running: a signal sent now reaches it.
            time.sleep(60)  # It is killed long before.
            os._exit(0)
        os.read(reading, 1)
        os.kill(child, signal.SIGTERM)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    assert trainer.train().status == "completed"
    assert ends == [-signal.SIGTERM] * 3


def test_an_unknown_signal_is_rejected_with_the_nearest():
    with pytest.raises(HookError, match="'SIGUSR'"):
        StopOnSignal(["SIGUSR"])


@pytest.mark.parametrize("phase", ["validate", "test"])
def test_an_evaluation_that_was_cut_short_returns_no_result(tmp_path, phase):
    data = make_data()
    trainer = make_trainer(
        hooks=[StopOnSignal()], val_data=data, data={"test": data}, run_dir=tmp_path
    )

    @trainer.on(f"before_{phase.removesuffix('idate')}_iter")
    def send(run):
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="SIGTERM") as ended:
        getattr(trainer, phase)()
    assert ended.value.code == 143
