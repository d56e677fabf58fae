"""Small pictures and smaller copies of them, for mmagic."""

import killing  # noqa: F401 - registers the hook
import numpy as np
from mmagic.registry import DATASETS
from mmengine.dataset import BaseDataset


@DATASETS.register_module()
class Pairs(BaseDataset):
    """Pictures that a network learns to enlarge by four.

    Args:
        count: How many.
        name: Of what they are; it is a part of their paths.
    """

    def __init__(self, count, name, pipeline=(), test_mode=False):
        self.count, self.name = count, name
        super().__init__(
            metainfo={"dataset_type": name, "task_name": "sisr"},
            pipeline=pipeline,
            test_mode=test_mode,
        )

    def load_data_list(self):
        draw, listed = np.random.default_rng(self.count), []
        for index in range(self.count):
            small = draw.integers(0, 256, (12, 12, 3)).astype(np.float32)
            large = small.repeat(4, 0).repeat(4, 1)
            listed.append(
                {
                    "img": small,
                    "gt": large,
                    "img_path": f"{self.name}{index}.png",
                    "gt_path": f"{self.name}{index}.png",
                    "img_channel_order": "rgb",
                    "gt_channel_order": "rgb",
                    "img_color_type": "color",
                    "gt_color_type": "color",
                    "key": f"{self.name}{index}",
                }
            )
        return listed
