"""A training without emloop's zeroth epoch."""

import pytest
from tests.emloop.looking import Look
from tests.tiny import make_trainer

from hookloop_dialects.emloop.hooks import SkipZerothEpoch


@pytest.mark.parametrize("first", [True, False])
def test_the_position_in_the_list_does_not_matter(first, tmp_path):
    look = Look()
    skip = SkipZerothEpoch(model=None, dataset=None, output_dir=None)
    hooks = [skip, look] if first else [look, skip]
    make_trainer(hooks=hooks, run_dir=tmp_path / "run").train()
    assert look.seen == ["train"] * 3


def test_without_it_every_stream_is_evaluated_first(tmp_path):
    look = Look()
    make_trainer(hooks=[look], run_dir=tmp_path / "run").train()
    assert look.seen == ["train"] * 6
