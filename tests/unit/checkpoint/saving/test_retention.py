"""P5: whatever is saved by whom, what stays is what a model that counts by brute force keeps."""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.checkpoint.saving.retention import (
    Keep,
    expendable,
    spare,
    surplus,
    without_surplus,
)
from hookloop.checkpoint.store.index import Saved

MANY = settings(derandomize=True, deadline=None, max_examples=200, database=None)


@dataclass(frozen=True)
class Step:
    """One save of one owner, and what it keeps then."""

    owner: str
    kind: str
    advance: int
    forever: bool
    most: int | None


steps = st.builds(
    Step,
    owner=st.sampled_from("ab"),
    kind=st.sampled_from(["periodic", "best"]),
    advance=st.integers(0, 2),  # With 0 two owners want the file of the same iteration.
    forever=st.booleans(),
    most=st.none() | st.integers(1, 3),
)


def add(entries, saved):
    """List a file as the index of a store does."""
    same = next((one for one in entries if one.name == saved.name), None)
    if same is not None:
        owners = tuple(dict.fromkeys([*same.owners, *saved.owners]))
        saved = replace(saved, owners=owners, forever=same.forever or saved.forever)
    return [*(one for one in entries if one is not same), saved]


class Model:
    """Who holds which files, in the order of saving; a file lives while somebody holds it."""

    def __init__(self):
        self.files = []
        self.holders = {}
        self.forever = set()

    def save(self, name, step):
        if name in self.files:
            self.files.remove(name)
        self.files.append(name)
        self.holders.setdefault(name, set()).add(step.owner)
        self.forever |= {name} if step.forever else set()
        for old in list(self.files):
            held = step.owner in self.holders[old] and old.startswith(step.kind)
            if not held or step.most is None or old in self.forever:
                continue
            newer = self.files[self.files.index(old) + 1 :]
            count = sum(n.startswith(step.kind) and step.owner in self.holders[n] for n in newer)
            # Those of this save alone are let go, so nothing that was counted is gone yet.
            if count >= step.most:
                self.holders[old].discard(step.owner)
        for old in list(self.files):
            if not self.holders[old]:
                self.files.remove(old)
                del self.holders[old]


@MANY
@given(st.lists(steps, max_size=25))
def test_what_stays_is_what_the_model_keeps(plan):
    entries, model, iteration = [], Model(), 1
    for step in plan:
        iteration += step.advance
        name = f"{step.kind}_{iteration}"
        saved = Saved(name, "", iteration, 0, kind=step.kind, owners=(step.owner,))
        entries = add(entries, replace(saved, forever=step.forever))
        keep = Keep(step.owner, step.kind, step.most)
        before, gone = entries, expendable(entries, keep)
        assert set(gone) <= set(surplus(entries, keep))
        entries = without_surplus(entries, keep)
        assert [one.name for one in before if one.name not in gone] == [e.name for e in entries]
        model.save(name, step)
        assert {one.name: set(one.owners) for one in entries} == model.holders
        assert [one.name for one in entries] == model.files
        assert surplus(entries, keep) == []  # A second time changes nothing.


def entry(name, **options):
    return Saved(name, "", 1, 0, **{"kind": "periodic", "owners": ("a",), **options})


def test_room_is_made_by_files_of_the_same_owner_alone():
    old, newest = entry("old"), entry("newest")
    others = [
        entry("best", kind="best"),
        entry("forever", forever=True),
        entry("shared", owners=("a", "b")),
        entry("of_b", owners=("b",)),
    ]
    assert spare([old, *others, newest], entry("wanted"), newest) == [old]
    assert spare([old, newest], entry("wanted"), None) == []
    assert spare([old, newest], entry("wanted", kind="best"), newest) == []
