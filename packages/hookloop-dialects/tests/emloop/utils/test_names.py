"""Names for directories."""

import random

from hookloop_dialects.emloop.utils import get_random_name


def test_a_name_has_two_words_and_leaves_the_random_numbers_alone():
    before = random.getstate()
    assert len(get_random_name().split("-")) == 2
    assert len(get_random_name("_").split("_")) == 2
    assert random.getstate() == before
