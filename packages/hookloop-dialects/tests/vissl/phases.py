"""What several tests of VISSL's dialect use."""

from tests.tiny import make_data, make_trainer

from hookloop_dialects.vissl import ClassyHook, SSLClassyHookFunctions

EVENTS = [event.name for event in SSLClassyHookFunctions]


def tracing(note, events=EVENTS):
    """A hook class that notes something at each event."""

    def at(event):
        return lambda self, task: self.calls.append((event, *note(task)))

    body = {event: at(event) for event in EVENTS if event in events}
    noop = {event: ClassyHook._noop for event in EVENTS[:2] + EVENTS[6:9] if event not in events}
    kind = type("Trace", (ClassyHook,), {**noop, **body})
    kind.calls = []
    return kind()


def train(tmp_path, *hooks, **options):
    parts = {"val_data": make_data(4), "max_epochs": 5, "run_dir": tmp_path / "run"}
    trainer = make_trainer(hooks=hooks, **(parts | options))
    trainer.train()
    return trainer


def models(folder):
    return sorted(path.name for path in folder.glob("*.torch"))
