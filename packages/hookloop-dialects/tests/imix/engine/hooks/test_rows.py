"""The hooks of iMIX that are built from native ones."""

import logging

from tests.imix.tracing import train

from hookloop import hooks as native
from hookloop_dialects.imix import engine


def test_native_hooks_stand_for_those_that_imix_only_documents():
    (anomaly,) = engine.hooks.AutogradAnomalyDetectHook().native_hooks()
    (profile,) = engine.hooks.AutogradProfilerHook(wait=2, active=5).native_hooks()
    assert type(anomaly) is native.DetectAnomaly
    assert type(profile) is native.ProfileOperators
    assert (profile.iterations, profile._active) == (2 + 1 + 5, 5)  # With a warm-up of 1.


def test_a_text_is_logged_before_the_training(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "imix"):
        train(tmp_path, engine.hooks.TextLoggerHook("hello"))
    assert caplog.messages.count("hello") == 1


def test_the_empty_hook_of_imix_names_the_one_that_works(tmp_path, caplog):
    train(tmp_path, engine.hooks.MomentumSchedulerHook())
    assert "use hookloop.hooks.ScheduleParameter" in caplog.text
