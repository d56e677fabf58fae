"""P6: whatever is asked of the owner of the checkpoints, and whatever the stores do meanwhile.

A training saves into a directory, which is well, and into a store that hangs, fails, fills up and
comes back. Each request is answered once, what is listed is whole and of its own iteration, and
`last_checkpoint` names the newest that is durable.
"""

import shutil
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.stores import Unreliable, open_unreliable

from hookloop.checkpoint.saving import writer
from hookloop.checkpoint.saving.checkpoints import Checkpoints
from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.world import World
from hookloop.runs.checkpoint_names import LAST, best_name, checkpoint_name

LONG, SHORT = 60.0, 0.02


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(writer, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(writer, "GRACE", SHORT)


class Training:
    """What the checkpoints are made of: weights that are the number of the iteration."""

    def __init__(self, home):
        self.home, self.iter, self.epoch = home, 0, 0
        self.ranks, self.is_sharded = Ranks(World()), False
        self.weights = torch.zeros(1000)

    def train(self):
        self.iter += 1
        self.weights.fill_(self.iter)

    def gather(self):
        return {"model": {"w": self.weights}, "progress": {"iter": self.iter}}

    def metrics(self):
        return {"train/loss": float(self.iter)}

    def restore_home(self):
        return False

    def announce(self):
        pass


class Saving(RuleBasedStateMachine):
    @initialize(keep=st.integers(1, 3))
    def begin(self, keep):
        self.directory = tempfile.mkdtemp()
        self.training = Training(Path(self.directory) / "run")
        self.training.home.mkdir()
        self.places = {str(self.training.home): LONG, f"{open_unreliable()}/run": SHORT}
        self.checkpoints = Checkpoints(self.training)
        self.keep = keep
        self.asked, self.told, self.lost = [], [], []
        self.validated = set()
        self.training.train()

    def ask(self, place, name, kind, owner, of=None):
        key = (place, name, owner)
        self.asked.append(key)
        return Save(
            name,
            place,
            kind=kind,
            owner=owner,
            keep=self.keep if kind == "periodic" else 1,
            of=of,
            on_lost=partial(self.lose, key),
            max_wait=self.places[place],
        )

    def lose(self, key):
        assert threading.current_thread() is threading.main_thread()
        self.lost.append(key)

    def tell(self, news):
        for saved in news:
            assert saved.metrics["train/loss"] == saved.iter
            assert saved.metrics.get("val/x", saved.iter) == saved.iter
            self.told.append((saved.location, saved.name, saved.owners))

    def name(self):
        return checkpoint_name("iter", self.training.iter)

    @rule()
    def train(self):
        self.training.train()

    @rule(where=st.sampled_from([[0], [1], [0, 1]]), owners=st.sampled_from(["a", "ab"]))
    def save(self, where, owners):
        chosen = [list(self.places)[index] for index in where]
        if not any(one[:2] == (place, self.name()) for one in self.asked for place in chosen):
            saves = [self.ask(p, self.name(), "periodic", o) for p in chosen for o in owners]
            self.checkpoints.take(saves)

    @rule(place=st.sampled_from([0, 1]))
    def save_best(self, place):
        place = list(self.places)[place]
        name = best_name("x", self.name())
        if (place, name, "a/x") not in self.asked:
            self.checkpoints.take([self.ask(place, name, "best", "a/x", of=self.name())])

    @rule(state=st.sampled_from(["well", "well", "hangs", "fails", "full", "slow"]))
    def change_store(self, state):
        Unreliable.become(state)

    @rule()
    def tell_hooks(self):
        news = self.checkpoints.finished()
        self.tell(self.checkpoints.to_announce(news, is_validation_due=False))

    @precondition(lambda self: self.training.iter not in self.validated)
    @rule()
    def validate(self):
        found = self.found_at_home()
        news = self.checkpoints.to_announce(found, is_validation_due=True)
        now = self.training.iter
        assert all(saved.iter != now for saved in news)
        self.tell(news)
        self.validated.add(now)
        is_held = self.checkpoints.add_results({"val/x": float(now)})
        news = self.checkpoints.to_announce([], is_validation_due=False)
        assert is_held == bool(news)
        assert all(saved.validated for saved in news)
        self.tell(news)

    def found_at_home(self):
        """Wait for the store that is well; return what has become durable in any."""
        home = str(self.training.home)
        asked = [one for one in self.asked if one[0] == home]
        found, end = [], time.monotonic() + LONG
        while sum(one.location == home for one in found) + self.told_at(home) < len(asked):
            assert time.monotonic() < end
            found += self.checkpoints.finished()
        return found

    def told_at(self, place):
        return sum(one[0] == place for one in self.told)

    def teardown(self):
        Unreliable.become("well")
        self.wait()
        self.checkpoints.close()
        self.check()
        shutil.rmtree(self.directory)

    def wait(self):
        """Wait until each request was answered; the store is well, so none takes forever."""
        end = time.monotonic() + LONG
        while len(self.told) + len(self.lost) < len(self.asked):
            assert time.monotonic() < end
            self.tell_hooks()

    def check(self):
        home, remote = self.places
        # Each request was answered once, in the order of the requests to its store.
        for place in self.places:
            asked = [one for one in self.asked if one[0] == place]
            left = [one for one in asked if one not in self.lost]
            told = [(at, name) for at, name, _ in self.told if at == place]
            assert told == [one[:2] for one in left]
            assert len(self.lost) == len(set(self.lost))
        assert all(place == remote for place, _, _ in self.lost)
        for place in self.places:
            store = CheckpointStore(place)
            for entry in store.index.entries.values():
                loaded = store.load(entry.name)
                assert loaded["progress"] == {"iter": entry.iter}
                assert torch.equal(loaded["model"]["w"], torch.full((1000,), float(entry.iter)))
                assert entry.metrics.get("val/x", entry.iter) == entry.iter
        self.check_home(CheckpointStore(home))
        periodic = [one for one in self.asked if "/" not in one[2] and one not in self.lost]
        if periodic:
            place, name, _ = periodic[-1]
            last = (self.training.home / LAST).read_text().strip()
            assert last == (name if place == home else f"{place}/{name}")
            assert name in CheckpointStore(place).index.entries

    def check_home(self, store):
        """Check the directory, where nothing fails: it holds what is kept and nothing else."""
        kept = {}
        for owner in ("a", "b", "a/x"):
            most = self.keep if owner in "ab" else 1
            own = [name for at, name, who in self.asked if (at, who) == (store.location, owner)]
            for name in own[-most:]:
                kept.setdefault(name, set()).add(owner)
        entries = store.index.entries
        assert {name: set(entry.owners) for name, entry in entries.items()} == kept
        for entry in entries.values():
            assert entry.validated == (entry.iter in self.validated)
        assert {path.name for path in store.storage.directory.glob("*.pth")} == set(kept)


TestSaving = Saving.TestCase
TestSaving.settings = settings(
    derandomize=True, deadline=None, max_examples=30, stateful_step_count=25, database=None
)


def test_a_url_with_a_slash_at_its_end_is_the_same_store(tmp_path):
    training, url = Training(tmp_path), f"{open_unreliable()}/run"
    training.train()
    checkpoints = Checkpoints(training)
    checkpoints.take([Save("one.pth", url), Save("two.pth", f"{url}/")])
    checkpoints.close()
    assert set(CheckpointStore(url).index.entries) == {"one.pth", "two.pth"}
