from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.checkpoint.sharding import run_ranks
from torch import Tensor, nn

from hookloop.checkpoint.state.digest import CHUNK, as_text, digest, digests

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.uint32,
    torch.int32,
    torch.uint64,
    torch.int64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
]
CHANGES: dict[str, Callable[[Tensor, int, int], object]] = {}


def change(function: Callable[[Tensor, int, int], object]) -> Callable[..., object]:
    CHANGES[function.__name__] = function
    return function


def bits_of(tensor: Tensor) -> Tensor:
    """Return the bytes of each number, as a view."""
    return tensor.view(torch.uint8).view(len(tensor), -1)


@change
def swapped_numbers(bits: Tensor, one: int, other: int) -> None:
    bits[[one, other]] = bits[[other, one]]


@change
def shifted(bits: Tensor, one: int, other: int) -> None:
    bits.copy_(bits.roll(1, 0))


@change
def reversed_order(bits: Tensor, one: int, other: int) -> None:
    bits.copy_(bits.flip(0))


@change
def two_signs(bits: Tensor, one: int, other: int) -> None:
    bits[[one, other], -1] ^= 0x80


@change
def one_sign(bits: Tensor, one: int, other: int) -> None:
    bits[one, -1] ^= 0x80


@change
def one_ulp(bits: Tensor, one: int, other: int) -> None:
    bits[one, 0] ^= 1


@change
def ulp_up_and_down(bits: Tensor, one: int, other: int) -> None:
    bits[one, 0] += 1
    bits[other, 0] -= 1


@change
def any_bit(bits: Tensor, one: int, other: int) -> None:
    bits[one, other % bits.shape[1]] ^= 1 << (other % 8)


@change
def set_to_zero(bits: Tensor, one: int, other: int) -> None:
    bits[one] = 0


def numbers(dtype: torch.dtype, length: int, seed: int) -> Tensor:
    size = torch.empty((), dtype=dtype).element_size()
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randint(0, 256, (length * size,), dtype=torch.uint8, generator=generator)
    return raw.view(dtype)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=30)
@given(
    kind=st.sampled_from(sorted(CHANGES)),
    length=st.sampled_from([2, 3, 17, 1000, CHUNK, 2 * CHUNK + 5]),
    seed=st.integers(0, 1000),
    places=st.tuples(st.integers(0, 2**20), st.integers(0, 2**20)),
)
def test_every_change_shows_in_every_type(
    dtype: torch.dtype, kind: str, length: int, seed: int, places: tuple[int, int]
) -> None:
    before = numbers(dtype, length, seed)
    after = before.clone()
    one = places[0] % length
    other = (one + 1 + places[1] % (length - 1)) % length
    CHANGES[kind](bits_of(after), one, other)
    is_same = torch.equal(bits_of(before), bits_of(after))
    assert (digest(before) == digest(after)) == is_same


def test_the_bits_of_nan_and_of_zero_count() -> None:
    odd = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)
    nan, zero = torch.tensor([float("nan")]), torch.zeros(1)
    assert len({digest(one) for one in (nan, odd, zero, -zero)}) == 4
    assert digest(nan) == digest(nan.clone())


def test_the_name_the_type_and_the_shape_count() -> None:
    one, other = torch.randn(2, 3), torch.randn(2, 3)
    assert digest({"a": one, "b": other}) != digest({"a": other, "b": one})
    assert digest({"a": one, "b": other}) == digest({"b": other, "a": one})
    zeros = [torch.zeros(2, 3), torch.zeros(3, 2), torch.zeros(2, 3, dtype=torch.int32)]
    assert len({digest(one) for one in [*zeros, torch.zeros(0, 3), torch.zeros(3, 0)]}) == 5
    assert digest({}) != digest({"a": torch.zeros(0)})


def test_the_layout_in_memory_does_not_count() -> None:
    whole = torch.randn(2, 3, 4, 5)
    assert digest(whole.to(memory_format=torch.channels_last)) == digest(whole)
    assert digest(whole.mT.contiguous().mT) == digest(whole)
    assert digest(nn.Parameter(whole)) == digest(whole)
    complex_ = torch.randn(4, dtype=torch.complex64)
    assert digest(complex_.conj()) == digest(complex_.conj().resolve_conj()) != digest(complex_)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support", "ignore:The PyTorch API of nested")
def test_tensors_of_other_kinds_have_a_digest_of_their_numbers() -> None:
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    other = torch.tensor([[0.0, 1.0], [3.0, 0.0]])
    kinds: list[Callable[[Tensor], Tensor]] = [
        Tensor.to_sparse,
        Tensor.to_sparse_csr,
        lambda one: torch.nested.nested_tensor([one, one[:1]]),
    ]
    for make in kinds:
        assert digest(make(dense)) == digest(make(dense)) != digest(make(other))
    assert digest(torch.zeros(3, device="meta")) != digest(torch.zeros(4, device="meta"))
    assert digest({"a": nn.LazyLinear(2).weight}) != digest({})


def test_many_digests_come_in_one_tensor() -> None:
    tensors = {"a": torch.randn(5), "b": torch.randn(CHUNK + 3), "c": torch.tensor(1)}
    each = digests(tensors)
    assert each.dtype == torch.int64 and each.shape == (3,)
    assert [int(one) for one in each] == [digest({name: one}) for name, one in tensors.items()]
    assert as_text(int(each.sum())) == as_text(digest(tensors))


def test_a_digest_stays_what_it_was() -> None:
    # Written into the files of runs: another one would look like another training.
    tensors = {"weight": torch.arange(6.0).view(2, 3), "bias": torch.arange(3).to(torch.bfloat16)}
    assert as_text(digest(tensors)) == "1a57b9b7ea784f0b"
    assert as_text(digest({"long": torch.arange(200_000)})) == "27d0c9b678661205"


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3])
def test_the_digests_of_parts_add_up_to_that_of_the_whole(tmp_path: Path, ranks: int) -> None:
    run_ranks(
        tmp_path,
        ranks,
        """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Partial, DTensor, Replicate, Shard, distribute_tensor
        from hookloop.checkpoint.state.digest import digests

        size, rank = dist.get_world_size(), dist.get_rank()
        mesh = init_device_mesh("cpu", (size,))
        shapes = ((7, 3), (1, 3), (4,), (0, 2), (), (300, 501), (2, 70_001), (5, 3, 7))
        for dtype in (torch.bfloat16, torch.float32, torch.float64, torch.complex128, torch.bool):
            for shape in shapes:
                whole = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
                wanted = digests({"a": whole, "b": whole})
                for placement in (*map(Shard, range(len(shape))), Replicate()):
                    cut = distribute_tensor(whole, mesh, [placement])
                    found = digests({"a": cut, "b": whole}, is_first=rank == 0)
                    dist.all_reduce(found)
                    assert torch.equal(found, wanted), (dtype, shape, placement)
        part = torch.full((3,), float(rank))
        found = digests({"a": DTensor.from_local(part, mesh, [Partial()])}, is_first=rank == 0)
        dist.all_reduce(found)
        assert torch.equal(found, digests({"a": torch.full((3,), float(sum(range(size))))}))
        model, optimizer = build(steps=2)
        held = dict(model.named_parameters())
        found = digests(held, is_first=rank == 0)
        dist.all_reduce(found)
        assert torch.equal(found, digests({name: full(one) for name, one in held.items()}))
        """,
    )
