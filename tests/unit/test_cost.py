"""What an iteration costs, counted and not timed: noise cannot fail this, a slip cannot pass."""

import gc
import inspect
import io
import json
import random
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
import torch
from tests.ranks import on_ranks
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    TensorDataset,
    WeightedRandomSampler,
)

import hookloop.hooks
from hookloop import Hook, Trainer
from hookloop.data.random.per_sample import SeededSamples
from hookloop.hooks import (
    AverageWeights,
    RecordTimes,
    SaveCheckpoint,
    ShowProgress,
    StepSchedules,
    WriteMetrics,
)

SOURCE = str(Path(hookloop.__file__).parent)
EVERY = 50
READS = ("item", "tolist", "cpu", "numpy", "__float__", "__int__", "__index__", "__bool__")


class OtherLoader(DataLoader):
    """Goes the ordinary way through torch, not our short one."""


def everyday():
    return [RecordTimes(), WriteMetrics(every=EVERY), StepSchedules(), SaveCheckpoint(every=None)]


def make_parts(iterations, loader=OtherLoader):
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    data = TensorDataset(torch.randn(2 * iterations, 2), torch.randn(2 * iterations, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.01), loader(data, batch_size=2)


def make_trainer(directory, hooks, iterations, default_hooks=False, loader=OtherLoader):
    model, optimizer, batches = make_parts(iterations, loader)
    steps = default_hooks is None or any(isinstance(hook, StepSchedules) for hook in hooks)
    return Trainer(
        model,
        train_data=batches,
        loss=torch.nn.functional.mse_loss,
        optimizer=optimizer,
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 1000) if steps else None,
        max_epochs=1,
        device="cpu",
        default_hooks=default_hooks,
        hooks=hooks,
        run_dir=directory,
    )


# --- calls -------------------------------------------------------------------------------------


def count(work, source=""):
    """Calls of functions, and calls into C, that code under a folder makes meanwhile."""
    counts = Counter()

    def note(frame, event, argument):
        if event in ("call", "c_call") and frame.f_code.co_filename.startswith(source):
            counts[event] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counts


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch):
    """What is written again every few seconds must not fall into one of two counted runs."""
    monkeypatch.setattr("hookloop.hooks.writing._timetable.SELDOM", float("inf"))


BACKWARD = torch.Tensor.backward.__code__


def count_each(start, source="", *, before=6 * EVERY, iterations=4 * EVERY):
    """Calls per iteration, from one backward pass to another.

    What a training does before and after its iterations is left out, because it depends on time: on
    how long git takes, for example. By default whole intervals are counted, behind the values after
    which sums are made.

    Args:
        start: What returns a training of so many iterations, to be called.
        source: The folder of the code whose calls count.
        before: Iterations that come first.
        iterations: Those that are counted.
    """
    train = start(before + iterations)
    counts, passes = Counter(), 0

    def note(frame, event, argument):
        nonlocal passes
        passes += event == "call" and frame.f_code is BACKWARD
        is_counted = before <= passes < before + iterations
        if is_counted and event in ("call", "c_call"):
            counts[event] += frame.f_code.co_filename.startswith(source)

    sys.setprofile(note)
    try:
        train()
    finally:
        sys.setprofile(None)
    assert passes == before + iterations
    return {event: counts[event] / iterations for event in ("call", "c_call")}


@pytest.mark.parametrize(
    ("hooks", "python", "c"),
    [
        pytest.param(list, 21, 17, id="no hooks"),
        pytest.param(everyday, 31, 26, id="everyday set"),
        pytest.param(lambda: [*everyday(), AverageWeights()], 34, 30, id="and EMA"),
    ],
)
def test_an_iteration_makes_few_calls(hooks, python, c, tmp_path):
    each = count_each(lambda number: make_trainer(tmp_path, hooks(), number).train, SOURCE)
    assert each["call"] <= python and each["c_call"] <= c, each


def by_hand(iterations, file=None):
    """The loop of a script; with a file, it also does what the everyday set does."""
    model, optimizer, batches = make_parts(iterations)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1000)

    def loop():
        since = perf_counter()
        for iteration, (inputs, targets) in enumerate(batches, start=1):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            if file is None:
                continue
            schedule.step()
            if iteration % EVERY == 0:
                line = {
                    "iter": iteration,
                    "loss": loss.item(),
                    "lr": schedule.get_last_lr()[0],
                    "iter_time": (perf_counter() - since) / EVERY,
                }
                file.write(json.dumps(line))
                since = perf_counter()

    return loop


@pytest.mark.slow
def test_an_iteration_makes_fewer_calls_than_a_loop_by_hand_torchs_own_included(tmp_path):
    ours = count_each(lambda number: make_trainer(tmp_path, [], number).train)
    theirs = count_each(by_hand)
    assert ours["call"] < theirs["call"] and ours["c_call"] < theirs["c_call"], (ours, theirs)


@pytest.mark.slow
def test_so_does_the_everyday_set(tmp_path):
    ours = count_each(lambda number: make_trainer(tmp_path, everyday(), number).train)
    theirs = count_each(lambda number: by_hand(number, io.StringIO()))
    assert sum(ours.values()) < sum(theirs.values()), (ours, theirs)


# --- calls, by kind of data --------------------------------------------------------------------


class OwnData(Dataset):
    def __init__(self, count):
        self.inputs, self.targets = torch.randn(count, 2), torch.randn(count, 1)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.targets[index]


class OwnDicts(OwnData):
    def __getitem__(self, index):
        return {"inputs": self.inputs[index], "targets": self.targets[index]}


class OwnStream(IterableDataset):
    def __init__(self, count):
        self.data = OwnData(count)

    def __iter__(self):
        return (self.data[index] for index in range(len(self.data)))


class OwnSampler(Sampler):
    """Draws as it goes; reads what the training may change."""

    def __init__(self, count):
        self.count, self.weights = count, torch.ones(10)

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count // 2):
            yield from torch.multinomial(self.weights, 2).tolist()


class OwnBatches(OwnSampler):
    def __len__(self):
        return self.count // 2

    def __iter__(self):
        for _ in range(self.count // 2):
            # Not randrange, which calls as often as its numbers happen to be too large.
            yield [int(random.random() * self.count), int(random.random() * self.count)]


def own_collate(samples):
    inputs, targets = zip(*samples, strict=True)
    return torch.stack(inputs), torch.stack(targets)


def load(data, **options):
    options = options if "batch_sampler" in options else {"batch_size": 2, **options}
    return OtherLoader(data, **options)


def weighted(count):
    return load(OwnData(count), sampler=WeightedRandomSampler([1.0] * count, count))


KINDS = {
    "list": lambda count: list(load(OwnData(count))),
    "own data set": lambda count: load(OwnData(count)),
    "shuffled": lambda count: load(OwnData(count), shuffle=True),
    "dict batches": lambda count: load(OwnDicts(count)),
    "own collate": lambda count: load(OwnData(count), collate_fn=own_collate),
    "own sampler": lambda count: load(OwnData(count), sampler=OwnSampler(count)),
    "own batch sampler": lambda count: load(OwnData(count), batch_sampler=OwnBatches(count)),
    "weighted": weighted,
    "iterable": lambda count: load(OwnStream(count)),
}
"""Each makes as many samples as are asked for, in batches of two."""


def parts_of(batch):
    return (batch["inputs"], batch["targets"]) if isinstance(batch, dict) else batch


def train_by_hand(batches):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def loop():
        for batch in batches:
            inputs, targets = parts_of(batch)
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()

    return loop


def train_on(directory, batches, **options):
    def step(run, batch):
        inputs, targets = parts_of(batch)
        return torch.nn.functional.mse_loss(run.model(inputs), targets)

    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Trainer(
        model,
        train_data=batches,
        step=step,
        optimizer=optimizer,
        max_epochs=1,
        device="cpu",
        run_dir=directory,
        **options,
    ).train


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_data_an_iteration_makes_fewer_calls_than_by_hand(kind, tmp_path):
    make = KINDS[kind]
    quiet = {"console": ShowProgress(every=EVERY, file=io.StringIO())}

    def count_all(start):
        return sum(count_each(start, iterations=EVERY).values())

    def ours(default_hooks):
        directory = tmp_path / str(bool(default_hooks))
        return count_all(
            lambda number: train_on(directory, make(2 * number), default_hooks=default_hooks)
        )

    theirs = count_all(lambda number: train_by_hand(make(2 * number)))
    bare, full = ours(False) - theirs, ours(quiet) - theirs
    assert bare < 0 and full <= (ALL_DEFAULTS_WITH_OWN if "sampler" in kind else ALL_DEFAULTS), (
        bare,
        full,
    )


@pytest.mark.slow
def test_what_is_counted_does_not_depend_on_how_long_git_takes(tmp_path, monkeypatch):
    each = []
    for patience in (0.0, 10.0):  # Without patience, the environment is written twice.
        monkeypatch.setattr("hookloop.hooks.measuring.record_environment.PATIENCE", patience)
        console = {"console": ShowProgress(every=EVERY, file=io.StringIO())}
        start = partial(train_on, tmp_path / str(patience), default_hooks=console)
        each.append(
            count_each(lambda number, start=start: start(KINDS["list"](2 * number)), SOURCE)
        )
    assert each[0] == each[1]


def test_a_sample_in_a_worker_takes_few_calls_more():
    def load_group(size):
        samples = SeededSamples(OwnData(64))
        samples.__getitems__(([0], 1, 1))  # The generators are looked for once.
        return count(lambda: samples.__getitems__((list(range(size)), 1, 1)), SOURCE)

    few, many = load_group(8), load_group(40)
    each = {event: (many[event] - few[event]) / 32 for event in ("call", "c_call")}
    assert each["call"] <= 7 and each["c_call"] <= 4, each


@pytest.mark.parametrize(
    "options", [{"sampler": OwnSampler(600)}, {"batch_sampler": OwnBatches(600)}]
)
def test_a_sampler_of_ones_own_takes_no_generator_apart(options, tmp_path, monkeypatch):
    def fail(*arguments, **named):
        raise AssertionError("60 us, once in and once out")

    class AfterTheFirst(Hook):
        def before_train_iter(self, run):
            for module, name in (
                (random, "getstate"),
                (random, "setstate"),
                (np.random, "get_state"),
                (np.random, "set_state"),
            ):
                inside = 1 <= run.progress.iter < 298  # The end of the pass is not an iteration.
                monkeypatch.setattr(module, name, fail if inside else ORIGINAL[name])

    train_on(
        tmp_path, load(OwnData(600), **options), default_hooks=False, hooks=[AfterTheFirst()]
    )()


ORIGINAL = {
    "getstate": random.getstate,
    "setstate": random.setstate,
    "get_state": np.random.get_state,
    "set_state": np.random.set_state,
}

ALL_DEFAULTS = 6
"""Calls that hookloop with all its default hooks may make more than the bare loop by hand."""

ALL_DEFAULTS_WITH_OWN = 24
"""The same with a sampler of one's own: three generators are taken and put back, twice."""


@pytest.mark.slow
def test_hooks_that_do_not_act_in_an_iteration_add_no_call_to_it(tmp_path):
    class Idle(Hook):
        def after_epoch(self, run):
            pass

    counts = []
    for number in (0, 100):
        hooks = [Idle().named(f"idle_{n}") for n in range(number)]
        start = partial(make_trainer, tmp_path / str(number), hooks)
        counts.append(count_each(lambda n, start=start: start(n).train, before=20, iterations=20))
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_hooks_that_act_in_every_iteration_add_one_call_each_and_a_check_for_all(tmp_path):
    class Empty(Hook):
        def after_train_iter(self, run):
            pass

    each = {}
    for number in (0, 1, 101):
        hooks = [Empty().named(f"empty_{n}") for n in range(number)]
        start = partial(make_trainer, tmp_path / str(number), hooks)
        each[number] = sum(count_each(lambda n, start=start: start(n).train, SOURCE).values())
    # That of the hook itself is not one of ours.
    assert each[101] == each[1]
    assert each[1] - each[0] < 45, each


# --- memory ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_iteration_leaves_nothing_behind(tmp_path):
    class CountBlocks(Hook):
        blocks = ()

        def after_train_iter(self, run):
            # As many iterations apart as sums and intervals take to come round, or nearly.
            # Both are behind the writes of an interval, which a thread makes.
            if run.progress.iter in (320, 320 + 1024):
                gc.collect()
                self.blocks = (*self.blocks, sys.getallocatedblocks())

    count = CountBlocks()
    make_trainer(tmp_path / "run", [*everyday(), AverageWeights(), count], 1400).train()
    before, after = count.blocks
    assert after - before < 512  # Half an object per iteration would be more.


# --- reads -------------------------------------------------------------------------------------


def hooks_with_an_interval():
    """Every built-in hook whose interval can be set; those for services write through WriteTo.

    Two of these are imported for seconds, and one reads no tensors, by the clock only.
    """
    left_out = (
        "WriteTo", "WriteMLflow", "WriteTrackio", "WriteComet", "WriteClearML", "LogDevice",
    )  # fmt: skip
    names = [
        name
        for name in hookloop.hooks.__all__
        if "every" in inspect.signature(getattr(hookloop.hooks, name)).parameters
    ]
    return [name for name in names if name not in left_out]


def make_hook(name):
    options = {"mode": "offline"} if name == "WriteWandb" else {}
    return getattr(hookloop.hooks, name)(every=EVERY, **options)


@pytest.fixture
def reads(monkeypatch):
    """The iterations in which a tensor's value was asked for, by what."""
    found = {"iteration": 1, "in": Counter()}
    for name in READS:
        original = getattr(torch.Tensor, name)

        def reading(self, *args, _original=original, _name=name, **kwargs):
            found["in"][found["iteration"], _name] += 1
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(torch.Tensor, name, reading)
    return found


def between_intervals(reads):
    """Leave out the first iteration, in which things are checked, and where intervals end."""
    return {key: n for key, n in reads["in"].items() if key[0] != 1 and key[0] % EVERY}


def train_and_count(directory, hooks, reads, **options):
    class NoteIteration(Hook):
        priority = 0

        def before_train_iter(self, run):
            reads["iteration"] = run.progress.iter + 1

    # More than the values after which sums are made; its end is the end of an interval.
    make_trainer(directory, [*hooks, NoteIteration()], 6 * EVERY, **options).train()


@pytest.mark.parametrize("loader", [OtherLoader, DataLoader])
def test_nothing_is_read_between_intervals_with_the_default_hooks(loader, reads, tmp_path):
    train_and_count(tmp_path / "run", [AverageWeights()], reads, default_hooks=None, loader=loader)
    assert between_intervals(reads) == {}
    assert any(iteration == EVERY for iteration, _ in reads["in"])  # The test sees what is read.


@pytest.mark.parametrize("name", hooks_with_an_interval())
def test_no_hook_reads_between_its_intervals(name, reads, tmp_path):
    train_and_count(tmp_path / "run", [make_hook(name)], reads)
    assert between_intervals(reads) == {}


def test_an_interval_reads_everything_in_one_go(reads, tmp_path):
    hooks = [RecordTimes(), WriteMetrics(every=EVERY)]
    train_and_count(tmp_path / "run", hooks, reads)
    assert {key: n for key, n in reads["in"].items() if key[0] == EVERY} == {(EVERY, "tolist"): 1}


def test_lines_on_the_screen_read_in_one_go_too(reads, tmp_path):
    train_and_count(tmp_path / "run", [ShowProgress(every=EVERY, file=io.StringIO())], reads)
    assert {key: n for key, n in reads["in"].items() if key[0] == EVERY} == {(EVERY, "tolist"): 1}


# --- what ranks tell each other ------------------------------------------------------------------


@pytest.mark.slow
def test_an_iteration_without_a_meeting_exchanges_nothing_but_gradients(tmp_path):
    """Counted are the collectives that Python calls: those of DDP are called by its reducer."""
    names = ("all_reduce", "all_gather", "all_gather_object", "broadcast", "broadcast_object_list",
             "barrier", "gather", "scatter", "reduce")  # fmt: skip

    def count_collectives():
        import torch.distributed as dist

        calls, sync_points = [], set()
        for name in names:
            original = getattr(dist, name)

            def counting(*args, _original=original, _name=name, **options):
                calls.append((trainer.run.progress.iter, _name))
                return _original(*args, **options)

            setattr(dist, name, counting)
        trainer = make_trainer(tmp_path / "run", [RecordTimes(), WriteMetrics(every=EVERY)], 200)
        trainer.on("after_train_iter")(lambda run: sync_points.add(trainer._loop.sync_points.next))
        trainer.train()
        inside = [call for call in calls if 0 < call[0] < 199]
        return inside, sync_points

    for inside, sync_points in on_ranks(count_collectives, 2):
        assert {iteration for iteration, _ in inside} <= sync_points
        assert {name for _, name in inside} <= {"all_reduce"}
        assert 0 < len(inside) <= len(sync_points) < 100
