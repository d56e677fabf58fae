"""Glazes live through trainings."""

import sys
from pathlib import Path

import pytest
import torch

from hookloop import dialects
from hookloop.errors import HookError
from hookloop.testing import assert_resumes_exactly, tiny_trainer
from hookloop_kiln import GLAZES, Glaze, glazes
from hookloop_kiln.dialect import KILN


def make(*given, **options):
    adapted = [one for glaze in given for one in KILN.adapt(glaze)]
    return tiny_trainer(*adapted, **{"max_epochs": 2, **options})


def train(*given, **options):
    trainer = make(*given, **options)
    trainer.train()
    return trainer


def test_every_glaze_of_the_catalogue_is_found():
    assert len(KILN.catalogue()) == 10
    for name in KILN.catalogue():
        assert issubclass(GLAZES.get(name), Glaze)
    with pytest.raises(KeyError, match="Did you mean 'CountPieces'"):
        GLAZES.get("CountPeaces")


def test_pieces_are_counted_by_the_glaze_and_by_the_kiln():
    count, sweep = glazes.CountPieces(), glazes.Sweep()
    run = train(count, sweep).run
    assert count.pieces > 0
    assert sweep.notes[-1] == f"emptied after {count.pieces} pieces"
    assert run.outcome.status == "completed"


def test_counters_are_those_of_kiln():
    seen = []

    class Look(Glaze):
        def fill(self, kiln, batch):
            seen.append((kiln.firing, kiln.turn))

        def cool(self, kiln):
            seen.append(kiln.firing)

    iters = train(Look()).run.progress.iter // 2
    assert seen[:iters] == [(1, turn) for turn in range(iters)]
    assert seen[iters] == 1
    assert seen[iters + 1] == (2, 0) and seen[-1] == 2


def test_heat_is_set_and_shelves_decide_the_order(tmp_path):
    trainer = train(glazes.Journal(), glazes.CoolDown(0.5), run_dir=tmp_path / "run")
    rate = trainer.run.optimizer.param_groups[0]["lr"]
    text = (tmp_path / "run" / "journal.txt").read_text()
    # The journal is on a lower shelf, so it sees what is left of the heat.
    assert text == f"firing 1: heat {rate * 2:g}\nfiring 2: heat {rate:g}\n"


def test_a_training_is_quenched():
    trainer = train(glazes.QuenchAt(1e9))
    assert trainer.run.progress.iter == 1
    assert "the loss is below" in trainer.run.outcome.reason


def test_peeks_and_shelves(tmp_path):
    data = [(torch.ones(4, 4), torch.zeros(4, dtype=torch.long))] * 2
    shelve = glazes.Shelve()
    trainer = make(glazes.PeekEvery(1), shelve, val_data=data, run_dir=tmp_path / "run")
    trainer.train()
    assert shelve.best < float("inf")
    assert list((tmp_path / "run").glob("good_firing_*.pth"))


def test_marks_reach_other_hooks():
    seen = []

    class Read(Glaze):
        shelf = 0

        def cool(self, kiln):
            seen.append(kiln.marks["mean_loss"])

    run = train(Read(), glazes.MeanLoss()).run
    assert len(seen) == 2 and seen[-1] == run.metrics.latest("kiln/mean_loss")


def test_an_event_of_its_own():
    stir = glazes.Stir()
    run = train(stir).run
    assert stir.stirred == 2 * (run.progress.iter // 2 // 2)


def test_a_crack_is_noted():
    class Drop(Glaze):
        def turned(self, kiln, batch, loss):
            raise ValueError("dropped")

    sweep = glazes.Sweep()
    with pytest.raises(ValueError, match="dropped"):
        train(sweep, Drop())
    assert sweep.notes[1] == "cracked: dropped" and sweep.notes[2].startswith("emptied")


def test_native_hooks_do_the_work_of_another(tmp_path):
    trainer = train(glazes.EvenGlaze(0.5), run_dir=tmp_path / "run")
    assert [hook.name for hook in trainer.run.hooks] == ["even_glaze", "even_glaze_save"]
    assert (tmp_path / "run" / "epoch_2.pth").is_file()


def test_what_is_not_offered_is_named_and_an_idle_glaze_is_rejected():
    class Ask(Glaze):
        def light(self, kiln):
            return kiln.wood

    with pytest.raises(HookError, match=r"asks for kiln\.wood.*train_data"):
        train(Ask())
    with pytest.raises(HookError, match="would do nothing"):
        train(type("Idle", (Glaze,), {})())

    class Wrong(Glaze):
        def turned(self, kiln): ...

    with pytest.raises(HookError, match="turned has the signature"):
        train(Wrong())


def test_a_resumed_training_ends_with_the_same_bits():
    def again(**options):
        given = glazes.CountPieces(), glazes.CoolDown(), glazes.MeanLoss(), glazes.Stir()
        return make(*given, **options)

    assert_resumes_exactly(again)


def test_a_file_that_imports_kiln_runs_under_the_alias(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from kiln import GLAZES, Glaze\n\n\n"
        "@GLAZES.register()\nclass Mine(Glaze):\n"
        "    def light(self, kiln):\n        self.lit = kiln.heat\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("hookloop.trainer.adapters.dialects", lambda: {"kiln": KILN})
    monkeypatch.setattr("hookloop.dialects.named", lambda name: KILN)
    with dialects.alias("kiln"):
        from mine import Mine
    mine = Mine()
    train(mine)
    assert mine.lit > 0 and GLAZES.get("Mine") is Mine
    assert "kiln" not in sys.modules and Path(str(tmp_path)).is_dir()
