import json
import threading
from functools import partial
from pathlib import Path

import pytest
import torch
from tests.names import iter_file
from tests.ranks import on_ranks
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks import AnswerRequests, SaveCheckpoint, StepSchedules, WriteMetrics
from hookloop.runs import read_interventions
from hookloop.runs.asking import ASK, ask
from hookloop.runs.changes import read_changes
from hookloop.runs.layout import RunDir
from hookloop.runs.reader import list_runs


class AskAt(Hook):
    """Asks in threads, as another process would, and waits until the request is there."""

    amount = 1.0

    def __init__(self, at: dict[int, tuple[object, ...]], wait: float = 20.0) -> None:
        self.at = at
        self.wait = wait
        self.answers: dict[int, dict[str, object]] = {}
        self.threads: list[threading.Thread] = []

    def before_train_iter(self, run):
        if request := self.at.pop(run.progress.iter, None):
            iteration, before = run.progress.iter, len(run._internals.asked)

            def work():
                self.answers[iteration] = ask(run.dir, *request, wait=self.wait)

            self.threads.append(threading.Thread(target=work))
            self.threads[-1].start()
            # The training must not be over before it is asked: the hook takes it here and now.
            answering = next(hook for hook in run.hooks if isinstance(hook, AnswerRequests))
            while len(run._internals.asked) == before and self.threads[-1].is_alive():
                answering._take(run)

    def after_run(self, run):
        answering = next(hook for hook in run.hooks if isinstance(hook, AnswerRequests))
        while any(thread.is_alive() for thread in self.threads):
            answering._take(run)


def train(directory, at, *, schedule=True, make_schedule=None, note=None, **options):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    asking = AskAt(at)
    if make_schedule is not None:
        made = make_schedule(optimizer)
    else:
        made = LambdaLR(optimizer, lambda step: 1 / (1 + step)) if schedule else None
    trainer = make_trainer(
        model=model,
        optimizer=optimizer,
        schedule=made,
        hooks=[
            AnswerRequests(period=60),
            WriteMetrics(every=1),
            SaveCheckpoint(every="1 epoch"),
            asking,
            *([StepSchedules()] if schedule else []),
            *([note] if note is not None else []),
        ],
        run_dir=directory,
        **options,
    )
    trainer.train()
    return trainer, asking.answers


def test_a_live_run_saves_validates_changes_and_stops(tmp_path):
    at = {
        1: ("save",),
        2: ("validate",),
        3: ("set", {"optimizer.lr": 0.5, "max_epochs": 7}),
        4: ("set", {"optimizer.lr": 0.5, "optimizer.lrr": 1}),
        5: ("stop",),
    }
    trainer, answers = train(tmp_path / "run", at, max_epochs=9, val_data=make_data(), val_every=50)
    saved, validated, changed, rejected, stopped = (answers[number] for number in range(1, 6))
    assert saved["done"]
    assert (saved["iter"], Path(str(saved["checkpoint"])).name) == (2, iter_file(2))
    assert (tmp_path / "run" / iter_file(2)).is_file()
    assert validated["metrics"].keys() == {"val/loss"}
    assert validated["iter"] == 3
    changes = [
        {"iter": 4, "key": "optimizer.lr", "old": 0.1 * (1 / 5), "new": 0.5, "how": "asked"},
        {"iter": 4, "key": "max_epochs", "old": 9, "new": 7, "how": "asked"},
    ]
    assert changed["changes"] == changes == read_changes(RunDir(tmp_path / "run"))
    assert not rejected["done"]
    assert "Did you mean 'lr'" in rejected["reason"]
    assert stopped["done"]
    outcome = trainer.run.outcome
    assert (outcome.status, trainer.run.progress.iter) == ("stopped", 6)
    assert "asked for it" in outcome.reason
    log = (tmp_path / "run" / "run.log").read_text()
    assert "Iteration 4: set optimizer.lr=0.5, max_epochs=7, asked for by" in log
    assert "warning" not in log  # It is intended.
    assert trainer.run.optimizer.param_groups[0]["lr"] == pytest.approx(0.5 * 5 / 7)
    assert not list((tmp_path / "run" / ASK).iterdir())
    recorded = read_interventions(RunDir(tmp_path / "run"))
    asked = [(one["iter"], one["do"]) for one in recorded if one["what"] == "asked"]
    assert asked == [(2, "save"), (3, "validate"), (4, "set"), (6, "stop")]
    assert all(one["by"] for one in recorded if one["what"] == "asked")
    kept = [one for one in recorded if one["what"] == "change"]
    assert [{name: one[name] for name in changes[0]} for one in kept] == changes
    assert [one["iter"] for one in recorded if one["what"] == "validation"] == [3]


CYCLE = partial(OneCycleLR, max_lr=0.1, total_steps=90)


def cycle(run_dir, at, **options):
    """Train 90 iterations along one cycle; return the rate after each, and the answers."""
    rates = []

    class Note(Hook):
        def before_update(self, run):
            rates.append(run.optimizer.param_groups[0]["lr"])

    trainer, answers = train(run_dir, at, make_schedule=CYCLE, note=Note(), max_epochs=30)
    return rates, answers, trainer


def test_the_answer_says_what_a_schedule_makes_of_a_rate_and_offers_the_base(tmp_path):
    plain, _, _ = cycle(tmp_path / "plain", {})
    rates, answers, _ = cycle(tmp_path / "now", {1: ("set", {"optimizer.lr": 1e-4})})
    (text,) = answers[1]["outlook"]
    # It is what was asked for now, and rises along the curve.
    assert rates[2] == pytest.approx(1e-4)
    highest, at = max(rates[2:]), rates.index(max(rates[2:]))
    assert highest == pytest.approx(1e-4 / plain[2] * max(plain))
    assert f"{highest:.3g} at iteration {at}" in text
    assert "optimizer.base_lr" in text
    # Or its highest value is what was asked for.
    rates, answers, _ = cycle(tmp_path / "base", {1: ("set", {"optimizer.base_lr": 1e-4})})
    assert max(rates[2:]) == pytest.approx(1e-4)
    assert rates[2:] == pytest.approx([1e-3 * rate for rate in plain[2:]])
    assert answers[1]["changes"][0]["old"] == pytest.approx(0.1)
    assert f"highest 0.0001 at iteration {at}" in answers[1]["outlook"][0]


def test_a_base_that_was_set_is_the_base_after_a_resume(tmp_path):
    at = {1: ("set", {"optimizer.base_lr": 0.01})}
    _whole, _, trainer = cycle(tmp_path / "whole", dict(at))
    cycle(tmp_path / "cut", {**at, 7: ("stop",)})
    _, _ = train(tmp_path / "cut", {}, make_schedule=CYCLE, max_epochs=30, resume=True)
    resumed, _ = train(tmp_path / "cut", {}, make_schedule=CYCLE, max_epochs=30, resume=True)
    assert_same_bits(trainer.run.model, resumed.run.model)


def test_without_a_schedule_there_is_no_base_and_nothing_to_foretell(tmp_path):
    settings = {1: ("set", {"optimizer.base_lr": 0.1}), 2: ("set", {"optimizer.lr": 0.2})}
    _, answers = train(tmp_path / "run", settings, schedule=False)
    assert "optimizer.lr" in answers[1]["reason"]
    assert "outlook" not in answers[2]


def test_a_resume_continues_with_what_was_changed(tmp_path):
    settings = {"optimizer.lr": 0.2, "hooks.ask_at.amount": 3.0, "max_epochs": 4}
    whole, _ = train(tmp_path / "whole", {2: ("set", settings)}, max_epochs=2)
    assert whole.run.progress.iter == 12
    train(tmp_path / "cut", {2: ("set", settings), 7: ("stop",)}, max_epochs=2)
    resumed, _ = train(tmp_path / "cut", {}, max_epochs=2, resume=True)
    assert resumed.run.progress.max_epochs == 4
    assert next(hook for hook in resumed.run.hooks if hook.name == "ask_at").amount == 3.0
    assert_same_bits(whole.run.model, resumed.run.model)
    assert [one["key"] for one in read_changes(RunDir(tmp_path / "cut"))] == [*settings]


def test_a_config_that_was_changed_since_counts_more(tmp_path):
    at = {2: ("set", {"max_epochs": 4}), 4: ("stop",)}
    train(tmp_path / "run", at, max_epochs=2, schedule=False)
    resumed, _ = train(tmp_path / "run", {}, max_epochs=3, schedule=False, resume=True)
    assert resumed.run.progress.epoch == 3


def test_a_change_after_the_checkpoint_of_a_resume_is_forgotten(tmp_path):
    run = tmp_path / "run"
    at = {1: ("save",), 3: ("set", {"optimizer.lr": 0.2}), 4: ("stop",)}
    train(run, at, schedule=False, max_epochs=3)
    assert len(read_changes(RunDir(run))) == 1
    train(run, {}, schedule=False, max_epochs=1, resume=str(run / iter_file(2)))
    assert read_changes(RunDir(run)) == []


def test_what_is_asked_at_the_end_is_answered_with_it(tmp_path):
    class AskLast(Hook):
        def after_train(self, run):
            (run.dir / ASK).mkdir()
            (run.dir / ASK / "a1.json").write_text('{"do": "save"}')

    hooks = [AnswerRequests(period=60), WriteMetrics(), AskLast()]
    make_trainer(hooks=hooks, run_dir=tmp_path / "run").train()
    answer = json.loads((tmp_path / "run" / "answers" / "a1.json").read_text())
    assert answer["done"] is False
    assert "the training has ended: completed" in answer["reason"]
    assert not [one for one in threading.enumerate() if one.name == "answer-requests"]


def test_without_validation_data_there_is_nothing_to_validate(tmp_path):
    _, answers = train(tmp_path / "run", {1: ("validate",)}, schedule=False)
    assert answers[1]["reason"] == "there is no validation data."


def test_a_request_in_bad_form_is_answered_and_a_link_is_reported_once(tmp_path):
    class AskBadly(Hook):
        def before_train_iter(self, run):
            if run.progress.iter == 0:
                (run.dir / ASK).mkdir()
                (run.dir / ASK / "a1.json").write_text('{"do": "save", "run": "rm"}')
                run.hooks[0]._take(run)
                (run.dir / ASK).rmdir()
                (run.dir / ASK).symlink_to(run.dir)
            run.hooks[0]._take(run)

    hooks = [AnswerRequests(period=60), WriteMetrics(), AskBadly()]
    make_trainer(hooks=hooks, run_dir=tmp_path / "run").train()
    answer = json.loads((tmp_path / "run" / "answers" / "a1.json").read_text())
    assert "unknown keys: run" in answer["reason"]
    log = (tmp_path / "run" / "run.log").read_text()
    assert log.count("Requests cannot be answered as they should") == 1
    assert list_runs(tmp_path)[0].status == "completed"


def test_the_period_must_be_positive():
    with pytest.raises(HookError, match="must be positive"):
        AnswerRequests(period=0)


def ask_on_ranks(directory):
    class AskOnFirst(AskAt):
        def before_train_iter(self, run):
            if run.world.is_main:
                super().before_train_iter(run)

        def after_run(self, run):
            if run.world.is_main:
                super().after_run(run)

    asking = AskOnFirst({2: ("set", {"optimizer.lr": 0.5}), 4: ("save",), 6: ("stop",)})
    trainer = make_trainer(
        train_data=make_data(batch_size=2),
        hooks=[AnswerRequests(period=60), WriteMetrics(), asking],
        run_dir=directory,
        max_epochs=1_000_000,
    )
    trainer.train()
    run = trainer.run
    return run.progress.iter, run.optimizer.param_groups[0]["lr"], asking.answers, run.outcome


@pytest.mark.slow
def test_all_ranks_do_what_is_asked_in_the_same_iteration(tmp_path):
    first, second = on_ranks(ask_on_ranks, 2, tmp_path / "run")
    assert first[:2] == second[:2]
    assert first[1] == 0.5
    assert [answer["done"] for answer in first[2].values()] == [True, True, True]
    assert second[2] == {}
    assert [end[3].status for end in (first, second)] == ["stopped", "stopped"]
