"""A small model, data and losses in the form that VISSL's methods use."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Views(Dataset):
    """Two views of each sample, one view of it, or a mapping of views."""

    def __init__(self, kind="crops", count=12):
        self.inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))
        self.kind = kind

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        one = self.inputs[index]
        inputs = {"crops": [one, one + 0.1], "plain": one, "views": {"global_views": one}}
        target = int(one[:3].argmax())
        return {"input": inputs[self.kind], "target": target, "data_momentum": [one]}


def views(kind="crops"):
    return DataLoader(Views(kind), batch_size=4)


class Encoder(nn.Module):
    """Returns a list with one output, as VISSL's models do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.trunk = nn.Linear(4, 8)
        head = nn.Module()
        head.nmb_heads = 1
        head.prototypes0 = nn.Linear(8, 3, bias=False)
        self.heads = nn.ModuleList([head])

    def forward(self, inputs):
        inputs = inputs["global_views"] if isinstance(inputs, dict) else inputs
        if isinstance(inputs, torch.Tensor):
            return [torch.tanh(self.trunk(inputs))]
        features = torch.tanh(self.trunk(torch.cat(list(inputs))))
        return [[features, self.heads[0].prototypes0(features)]]


class TeacherLoss(nn.Module):
    """What the losses of VISSL's methods have in common; a checkpoint waits for its teacher."""

    teacher = "momentum_teacher"

    def __init__(self, compare, **settings):
        super().__init__()
        self.compare = compare
        self.checkpoint = None
        setattr(self, self.teacher, None)
        for name, value in settings.items():
            setattr(self, name, value)

    def load_state_dict(self, state, *args, **kwargs):
        if getattr(self, self.teacher) is None:
            self.checkpoint = state
            return None
        return super().load_state_dict(state, *args, **kwargs)

    def forward(self, output, target):
        return self.compare(self, output)
