import torch

from hookloop.hooks.guarding.stop_on_nan import FiniteCheck


def test_the_first_nonfinite_number_is_found_among_several_types():
    seen = FiniteCheck[int]()
    values = [1.0, 60000.0, float("inf"), float("nan")]
    dtypes = [torch.float64, torch.float16, torch.float32, torch.bfloat16]
    for label, (value, dtype) in enumerate(zip(values, dtypes, strict=True)):
        seen.add(label, torch.tensor(value, dtype=dtype))
    assert seen.take_first_nonfinite() == (2, float("inf"))
    seen.add(9, torch.tensor(1e300, dtype=torch.float64))
    assert seen.take_first_nonfinite() is None
