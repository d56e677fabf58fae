import threading

from hookloop.hooks.measuring.log_device import Sampler


def test_samples_are_taken_at_the_interval_and_at_the_end():
    seen, enough = [], threading.Event()

    def sample():
        seen.append(threading.current_thread().name)
        if len(seen) == 3:
            enough.set()

    sampler = Sampler(sample, 0.001, seen.append)
    assert enough.wait(30)
    assert sampler.close()
    assert len(seen) >= 4 and set(seen) == {"sample"}


def test_a_short_life_has_one_sample():
    seen = []
    sampler = Sampler(lambda: seen.append(1), 1000, seen.append)
    assert sampler.close()
    assert seen == [1]


def test_a_failure_is_reported_once():
    seen = []

    def fail():
        raise OSError("no driver")

    sampler = Sampler(fail, 0.001, lambda error: seen.append(str(error)))
    assert sampler.close()
    assert seen == ["no driver"]
