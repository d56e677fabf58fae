"""``hookloop find-batch``: a table or JSON, a suggestion, and nothing left behind."""

import json
import re

import pytest
from click.testing import CliRunner

from hookloop.cli.main import cli

CONFIG = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

class Limited(torch.nn.Linear):
    room = {room}

    def forward(self, inputs):
        if len(inputs) > self.room:
            raise torch.OutOfMemoryError("no room")
        return super().forward(inputs)

torch.manual_seed(0)
model = Limited(2, 1)
train_data = {data}
loss = torch.nn.functional.mse_loss
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
max_epochs = 1
"""
LOADER = "DataLoader(TensorDataset(torch.ones(40, 2), torch.ones(40, 1)), batch_size=4)"
PART = """\
dict(type=DataLoader, batch_size=4, dataset=TensorDataset(torch.ones(40, 2), torch.ones(40, 1)))
"""


def find(tmp_path, name, *arguments, room=10**6, data=LOADER):
    (tmp_path / f"{name}.py").write_text(CONFIG.format(room=room, data=data))
    result = CliRunner().invoke(cli, ["find-batch", f"{name}.py", *arguments])
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert left == {f"{name}.py"}
    return result


def test_the_table_and_the_suggestion(tmp_path):
    result = find(tmp_path, "find_a", room=11)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split("  ")[0] == "batch size"
    assert [line.split()[:2] for line in lines[1:-2]] == [
        ["2", "yes"], ["4", "yes"], ["8", "yes"], ["10", "yes"], ["11", "yes"], ["12", "no"],
        ["16", "no"],
    ]  # fmt: skip
    assert lines[-2] == (
        "The largest batch that fits has 11 samples: write batch_size=11 in what train_data builds"
    )
    assert re.fullmatch(
        r"A batch of (2|4|8|10|11) is the fastest: [\d.,e+]+ samples per second\.", lines[-1]
    )


def test_json_is_read_back_and_names_the_override(tmp_path):
    result = find(tmp_path, "find_b", "--json", "--most", "16", data=PART)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["override"] == "train_data.batch_size=16"
    assert (found["largest"], found["most"], found["limited_by_memory"]) == (16, 16, False)
    assert [trial["size"] for trial in found["trials"]] == [2, 4, 8, 16]
    assert all(trial["seconds_per_iter"] > 0 for trial in found["trials"])


def test_no_limit_is_said(tmp_path):
    result = find(tmp_path, "find_c")
    assert "All sizes up to 40 fit, where the search ends" in result.output


@pytest.mark.parametrize(
    ("name", "options", "code", "message"),
    [
        ("find_d", {"room": 0}, 1, "not even a batch of one sample fits"),
        ("find_e", {"data": "[(torch.ones(4, 2), torch.ones(4, 1))]"}, 2, "needs a DataLoader"),
    ],
)
def test_the_exit_code_tells_what_went_wrong(tmp_path, name, options, code, message):
    result = find(tmp_path, name, **options)
    assert result.exit_code == code
    assert message in result.output
