import torch

from hookloop.metrics.finite import Finite


def test_the_first_fault_is_found_among_numbers_of_several_types():
    seen = Finite[int]()
    values = [1.0, 60000.0, float("inf"), float("nan")]
    dtypes = [torch.float64, torch.float16, torch.float32, torch.bfloat16]
    for label, (value, dtype) in enumerate(zip(values, dtypes, strict=True)):
        seen.add(label, torch.tensor(value, dtype=dtype))
    assert seen.first_fault() == (2, float("inf"))
    seen.add(9, torch.tensor(1e300, dtype=torch.float64))
    assert seen.first_fault() is None
