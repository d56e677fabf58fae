"""VISSL's defaults."""

from hookloop_dialects.vissl.defaults import DEFAULTS, complete


def test_what_a_config_has_wins_and_neither_side_changes():
    given = {"CHECKPOINT": {"BACKEND": "other"}, "LOSS": "text", "MINE": 1}
    whole = complete(given, DEFAULTS)
    assert whole["CHECKPOINT"]["BACKEND"] == "other"
    assert whole["CHECKPOINT"]["CHECKPOINT_FREQUENCY"] == 1
    assert (whole["LOSS"], whole["MINE"], whole["LOG_FREQUENCY"]) == ("text", 1, 10)
    assert given == {"CHECKPOINT": {"BACKEND": "other"}, "LOSS": "text", "MINE": 1}
    assert DEFAULTS["CHECKPOINT"]["BACKEND"] == "disk"
