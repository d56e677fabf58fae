"""Small scenes with labels, for mmsegmentation."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import killing  # noqa: F401 - registers the hook
import numpy as np


class _Compiled(ModuleType):
    """Stands in for the compiled operations of mmcv, of which the model here needs none."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return


_ext = _Compiled("mmcv._ext")
_ext.__spec__ = ModuleSpec("mmcv._ext", None)
sys.modules.setdefault("mmcv._ext", _ext)

from mmseg.datasets import BaseSegDataset  # noqa: E402
from mmseg.registry import DATASETS  # noqa: E402


@DATASETS.register_module()
class Scenes(BaseSegDataset):
    METAINFO = {  # noqa: RUF012 - as MMEngine has it
        "classes": ("ground", "wall", "sky"),
        "palette": [[0, 0, 0], [1, 1, 1], [2, 2, 2]],
    }

    def __init__(self, pipeline=(), test_mode=False):
        super().__init__(
            pipeline=pipeline, test_mode=test_mode, img_suffix=".png", seg_map_suffix=".png"
        )

    def load_data_list(self):
        draw, listed = np.random.default_rng(5), []
        for index in range(10):
            labels = draw.integers(0, 3, (8, 8)).repeat(4, 0).repeat(4, 1).astype(np.uint8)
            image = (draw.random((32, 32, 3)) * 60 + labels[..., None] * 60).astype(np.uint8)
            listed.append(
                {
                    "img": image,
                    "gt_seg_map": labels,
                    "img_shape": (32, 32),
                    "ori_shape": (32, 32),
                    "img_path": f"{index}.png",
                    "seg_map_path": f"{index}.png",
                    "seg_fields": ["gt_seg_map"],
                    "reduce_zero_label": False,
                    "label_map": None,
                }
            )
        return listed
