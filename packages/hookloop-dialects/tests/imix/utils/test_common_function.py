"""Small functions that iMIX's files share."""

from hookloop_dialects.imix.utils.common_function import update_d1_with_d2


def test_missing_items_are_added():
    first = {"a": 1}
    update_d1_with_d2(first, {"a": 2, "b": 3})
    update_d1_with_d2(first, None)
    assert first == {"a": 1, "b": 3}
