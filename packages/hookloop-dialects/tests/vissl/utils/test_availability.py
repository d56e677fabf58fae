"""Which packages are installed."""

import pytest

from hookloop import dialects
from hookloop_dialects.vissl.utils import availability


def test_a_package_that_we_stand_in_for_is_not_installed():
    with dialects.alias("vissl"):
        import classy_vision  # noqa: F401 - to have it loaded

        assert not availability.is_available("classy_vision")
    assert availability.is_available("torch") and not availability.is_available("no_such_package")


@pytest.mark.parametrize("name", ["apex", "tensorboard"])
def test_each_question_has_an_answer(name):
    assert getattr(availability, f"is_{name}_available")() in (True, False)
