"""Small pictures of three kinds, for mmpretrain."""

import killing  # noqa: F401 - registers the hook
import numpy as np
from mmpretrain.datasets import BaseDataset
from mmpretrain.registry import DATASETS


@DATASETS.register_module()
class Pictures(BaseDataset):
    METAINFO = {"classes": ("dark", "grey", "bright")}  # noqa: RUF012 - as MMEngine has it

    def __init__(self, pipeline=(), test_mode=False):
        super().__init__(ann_file="", pipeline=pipeline, test_mode=test_mode)

    def load_data_list(self):
        draw = np.random.default_rng(5)
        return [
            {
                "img": (draw.random((32, 32, 1)) * 80 + index % 3 * 60).astype(np.uint8),
                "img_shape": (32, 32),
                "ori_shape": (32, 32),
                "gt_label": index % 3,
                "img_path": f"{index}.png",
                "sample_idx": index,
            }
            for index in range(44)
        ]
