"""What the README and the pages on Trainer and hooks show really runs."""

import re
from pathlib import Path

import pytest
import torch
import yaml

from hookloop import HookloopError, Trainer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language, text=README):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", ["trainer", "writing-hooks", "checkpoints"])
def test_the_python_of_a_page_runs_from_top_to_bottom(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    names = {"__name__": "page"}
    for block in blocks("python", text):
        exec(compile(block, f"{page}.md", "exec"), names)


def test_the_python_of_the_readme_runs(capsys):
    script, hook, function = blocks("python")
    names = {}
    exec(script, names)
    assert float(re.search(r"([\d.]+)% right", capsys.readouterr().out)[1]) > 95
    exec(hook, names)
    again = names["trainer"].run
    trainer = Trainer(
        model=again.model,
        train_data=names["batches"],
        val_data=names["batches"],
        loss=names["nn"].functional.cross_entropy,
        optimizer=again.optimizer,
        metrics={"accuracy": lambda output, targets: (output.argmax(1) == targets).float().mean()},
        max_epochs=9,
        default_hooks=False,
        hooks=[names["StopWhenGood"](0.9)],
    )
    exec(function, names | {"trainer": trainer})
    outcome = trainer.train()
    assert outcome.status == "stopped"
    assert "accuracy reached" in outcome.reason


def test_the_readme_shows_the_real_refusal():
    _, hook, _ = blocks("python")
    names = {}
    exec(hook.replace("after_val_epoch", "after_vla_epoch"), names)
    model = torch.nn.Linear(1, 1)
    with pytest.raises(HookloopError) as refusal:
        Trainer(model, hooks=[names["StopWhenGood"]()], default_hooks=False).check()
    assert str(refusal.value) in README


def test_the_config_of_the_readme_is_part_of_the_example():
    (text,) = blocks("yaml")
    whole = yaml.safe_load((ROOT / "examples" / "digits" / "config.yaml").read_text())
    for key, value in yaml.safe_load(text).items():
        assert whole[key] == value
