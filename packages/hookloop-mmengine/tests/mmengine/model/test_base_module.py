"""Modules that initialize their weights once."""

import pytest
import torch
from torch import nn

from hookloop_mmengine.logging import MMLogger
from hookloop_mmengine.model import BaseModule, ModuleDict, ModuleList, Sequential


class Inner(BaseModule):
    def __init__(self, init_cfg=None):
        super().__init__(init_cfg)
        self.calls = 0
        self.linear = nn.Linear(1, 1)

    def init_weights(self):
        self.calls += 1
        super().init_weights()


def test_weights_inside_are_initialized_too():
    class Outer(BaseModule):
        def __init__(self):
            super().__init__()
            self.inner, self.plain = Inner(), nn.Linear(1, 1)

    outer = Outer()
    assert not outer.is_init
    outer.init_weights()
    assert outer.is_init
    assert outer.inner.is_init
    outer.init_weights()
    assert outer.inner.calls == 1


def test_containers_hold_modules():
    first, second = Inner(), Inner()
    sequence = Sequential(first, nn.Identity(), init_cfg={"type": "x"})
    assert len(sequence) == 2
    assert sequence.init_cfg == {"type": "x"}
    listed = ModuleList([first, second])
    assert list(listed) == [first, second]
    listed.init_weights()
    assert (first.calls, second.calls) == (1, 1)
    assert len(ModuleList()) == 0


def test_a_sequence_computes_in_order():
    sequence = Sequential(nn.Flatten(), nn.Identity())
    assert sequence(torch.ones(1, 2, 2)).shape == (1, 4)


def test_pretrained_weights_are_loaded(tmp_path):
    source = nn.Linear(1, 1)
    weights = {f"module.linear.{name}": value for name, value in source.state_dict().items()}
    torch.save({"state_dict": weights}, tmp_path / "weights.pth")
    module = Inner({"type": "Pretrained", "checkpoint": str(tmp_path / "weights.pth")})
    module.init_weights()
    assert torch.equal(module.linear.weight, source.weight)


def test_other_initializers_leave_the_weights():
    module = Inner({"type": "Constant", "val": 0})
    before = module.linear.weight.detach().clone()
    module.init_weights()
    assert torch.equal(module.linear.weight, before)


def constant(val, **more):
    return {"type": "Constant", "val": val, "layer": "Linear", **more}


def test_no_config_changes_nothing():
    for nothing in (None, [], {}):
        module = Inner(nothing)
        before = module.linear.weight.item()
        module.init_weights()
        assert module.linear.weight.item() == before


def test_the_configs_of_inner_modules_win():
    outer = Sequential(Inner(constant(2)), Inner(), init_cfg=constant(1))
    outer.init_weights()
    assert [inner.linear.weight.item() for inner in outer] == [2, 1]


def test_a_list_is_applied_in_order_and_pretrained_weights_last(tmp_path):
    source = nn.Linear(1, 1)
    torch.save({f"linear.{k}": v for k, v in source.state_dict().items()}, tmp_path / "a.pth")
    pretrained = {"type": "Pretrained", "checkpoint": str(tmp_path / "a.pth")}
    module = Inner([pretrained, constant(3, bias=4)])
    module.init_weights()
    assert torch.equal(module.linear.weight, source.weight)
    # Those of an outer module replace what the inner ones did.
    torch.save({f"0.linear.{k}": v for k, v in source.state_dict().items()}, tmp_path / "b.pth")
    outer = Sequential(
        Inner(constant(5)), init_cfg={"type": "Pretrained", "checkpoint": str(tmp_path / "b.pth")}
    )
    outer.init_weights()
    assert torch.equal(outer[0].linear.weight, source.weight)


def test_a_config_is_a_dict_or_a_list_of_dicts():
    with pytest.raises(AssertionError, match="a dict or a list of dicts"):
        Inner(["Constant"]).init_weights()


def test_the_config_is_a_copy():
    config = constant(1)
    module = Inner(config)
    config["val"] = 2
    module.init_weights()
    assert module.linear.weight.item() == 1
    assert "init_cfg={'type': 'Constant'" in repr(module)
    assert "init_cfg" not in repr(Inner())


@pytest.fixture
def log(tmp_path):
    """The log file of the current logger."""
    MMLogger.get_instance("weights", log_file=tmp_path / "a.log")
    yield tmp_path / "a.log"
    MMLogger._instance_dict.pop("weights").close()


def test_a_second_call_is_a_warning_and_changes_nothing(log):
    module = Inner(constant(1))
    module.init_weights()
    module.linear.weight.data.fill_(7)
    module.init_weights()
    assert module.linear.weight.item() == 7
    assert "init_weights of Inner has been called more than once" in log.read_text()


def test_a_part_that_is_marked_is_left_alone():
    outer = Sequential(Inner(constant(2)))
    outer[0].is_init = True
    outer.init_weights()
    assert outer[0].calls == 0


def test_a_wrapped_part_is_initialized():
    outer = Sequential(nn.DataParallel(Inner(constant(2))))
    outer.init_weights()
    assert outer[0].module.linear.weight.item() == 2


def test_how_each_parameter_was_initialized_is_in_the_log_file(log, capfd):
    Sequential(Inner(constant(2)), Inner()).init_weights()
    text = log.read_text()
    assert "0.linear.weight - torch.Size([1, 1]): \nConstantInit: bias=0, val=2" in text
    assert "1.linear.weight - torch.Size([1, 1]): \nThe value is the same before" in text
    assert "ConstantInit" not in capfd.readouterr().out


def test_a_dict_of_modules():
    modules = ModuleDict({"a": Inner(constant(2))})
    modules.init_weights()
    assert modules["a"].linear.weight.item() == 2
