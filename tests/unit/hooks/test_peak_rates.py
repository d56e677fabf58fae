import pytest
import torch

from hookloop.hooks.measuring.record_throughput import peak_in_use, peak_of


@pytest.mark.parametrize(
    ("name", "dtype", "tf32", "tera"),
    [
        ("NVIDIA H100 80GB HBM3", torch.bfloat16, False, 989.4),
        ("NVIDIA H100 PCIe", torch.float16, False, 756.0),
        ("NVIDIA A100-PCIE-40GB", torch.float32, True, 156.0),
        ("NVIDIA A100-PCIE-40GB", torch.float32, False, 19.5),
        ("NVIDIA L40S", torch.bfloat16, False, 362.0),
        ("NVIDIA A10G", torch.bfloat16, False, 70.0),
        ("Tesla T4", torch.float16, False, 65.0),
    ],
)
def test_the_longest_name_counts(name, dtype, tf32, tera):
    assert peak_of(name, dtype, uses_tf32=tf32) == pytest.approx(tera * 1e12)


def test_what_is_not_known_has_no_peak():
    assert peak_of("Tesla T4", torch.bfloat16, uses_tf32=False) is None
    assert peak_of("NVIDIA A100", torch.float64, uses_tf32=False) is None
    assert peak_of("Something Else", torch.float16, uses_tf32=False) is None
    assert peak_in_use(torch.device("cpu"), torch.float32) == ("cpu", None)
