"""Predicted masks as pictures."""

import numpy as np
import pytest

from hookloop.errors import HookError
from hookloop_dialects.emloop.hooks import SaveMasks

Image = pytest.importorskip("PIL.Image")


def read(path):
    return np.asarray(Image.open(path))


def test_a_mask_is_scaled_rounded_and_written_under_its_path(tmp_path):
    hook = SaveMasks("masks", "paths", output_root=str(tmp_path))
    masks = np.array([[[0.0, 0.5], [1.0, 2.0]], [[-1.0, 0.1], [0.2, 0.3]]])
    hook.after_batch("valid", {"masks": masks, "paths": ["one", "deep/er/two"]})
    first = read(tmp_path / "one_mask.png")
    assert first.reshape(2, 2, -1)[..., 0].tolist() == [[0, 128], [255, 255]]
    second = read(tmp_path / "deep" / "er" / "two_mask.png")
    assert second.reshape(2, 2, -1)[..., 0].tolist() == [[0, 26], [51, 76]]


def test_factor_and_suffix_can_be_chosen(tmp_path):
    hook = SaveMasks("masks", "paths", 1.0, str(tmp_path), ".png")
    hook.after_batch("valid", {"masks": np.full((1, 2, 2), 7.0), "paths": ["a"]})
    assert read(tmp_path / "a.png").max() == 7


def test_each_mask_needs_a_path(tmp_path):
    hook = SaveMasks("masks", "paths", output_root=str(tmp_path))
    with pytest.raises(ValueError, match="argument"):
        hook.after_batch("valid", {"masks": np.ones((2, 1, 1)), "paths": ["a"]})


def test_another_format_is_rejected():
    with pytest.raises(HookError, match="suffix='.jpg' must end in .png"):
        SaveMasks("masks", "paths", suffix=".jpg")


def test_a_subclass_saves_its_own_way():
    class Mine(SaveMasks):
        def save_mask(self, mask, path):
            saved.append((mask.shape, path))

    saved = []
    hook = Mine("masks", "paths", output_root="root")
    hook.after_batch("valid", {"masks": np.zeros((1, 2, 3)), "paths": ["a"]})
    assert saved == [((2, 3), "root/a")]
