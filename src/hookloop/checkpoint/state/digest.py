"""A number of 64 bits for the bits of many tensors, in about the time that it takes to read them.

It finds errors, not fraud: whoever wants to can make other tensors with the same digest.

A tensor is a row of words of 32 bits, and each word counts by its position in the whole tensor: the
digests of the parts that ranks hold add up to that of the whole. A change of a single word always
shows. Several changes cancel by chance: two flips of the same bit within 65,536 words in one of
65,536 cases at most, all others far more rarely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from math import prod
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from hookloop.checkpoint.shards.dtensors import is_sharded, local_part

CHUNK = 65_536
"""Words that are weighted at once: they, their weights and a copy fit into a core's cache."""

AT_ONCE = 256
"""Chunks at once on an accelerator, where each operation costs a launch."""

_HALF = 0xFFFF
_WRAP = 1 << 64
_NARROW = {1: torch.uint8, 2: torch.int16}


def digests(tensors: Mapping[str, Tensor], *, is_first: bool = True) -> Tensor:
    """Return a digest of each tensor, as int64 on the device of the first one.

    Nothing is read from the device. What the ranks return is added up, wrapping, where tensors are
    DTensors.

    Args:
        tensors: Tensors by name; a name, a type and a shape count as well as the bits.
        is_first: Whether tensors that each rank has whole are counted here.
    """
    with torch.no_grad():
        return _digests(tensors, is_first)


def digest(tensors: Tensor | Mapping[str, Tensor]) -> int:
    """Return one digest of one tensor, or of several by name, which this process has whole.

    >>> as_text(digest(torch.zeros(2))) == as_text(digest(torch.tensor([0.0, -0.0])))
    False
    """
    each = digests({"": tensors} if isinstance(tensors, Tensor) else tensors)
    return int(each.sum())


def as_text(value: int) -> str:
    """Return a digest as 16 hexadecimal digits.

    >>> as_text(-1), as_text(255)
    ('ffffffffffffffff', '00000000000000ff')
    """
    return f"{value % _WRAP:016x}"


# --- pieces of tensors ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Piece:
    """Numbers that lie one after another.

    Attributes:
        kind: What they are; counts once for all ranks.
        blocks: Their words, each row with the position of its first one in the whole.
        counts: Whether the kind is counted here.
    """

    kind: str
    blocks: Sequence[tuple[int, Tensor]]
    counts: bool


def _pieces(name: str, tensor: Tensor, is_first: bool) -> Iterator[_Piece]:
    if is_lazy(tensor):
        yield _Piece(f"{name} not initialized", (), is_first)
        return
    # A nested tensor has a length that is a symbol, or no shape at all.
    shape = () if tensor.is_nested else tuple(tensor.shape)
    kind = f"{name} {tensor.dtype} {shape}"
    if is_sharded(tensor):
        yield from _of_dtensor(name, kind, cast("Any", tensor))
    elif (parts := _parts(tensor)) is not None:
        for part, held in parts.items():
            yield from _pieces(f"{kind} {part}", held, is_first)
    elif tensor.device.type == "meta":
        yield _Piece(f"{kind} meta", (), is_first)
    else:
        yield _Piece(kind, [(0, _words(tensor))] if is_first else (), is_first)


def _parts(tensor: Tensor) -> dict[str, Tensor] | None:
    """Return the tensors of which one consists that has no plain row of numbers, or None."""
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__ and hasattr(
        tensor, "__tensor_flatten__"
    ):
        names = cast("Any", tensor).__tensor_flatten__()[0]
        return {name: getattr(tensor, name) for name in names}
    if tensor.is_nested:
        return {str(place): one for place, one in enumerate(tensor.unbind())}
    if tensor.is_quantized:
        return {"quantized": tensor.int_repr(), "value": tensor.dequantize()}
    if tensor.layout is torch.sparse_coo:
        whole = tensor.coalesce()
        return {"indices": whole.indices(), "values": whole.values()}
    if tensor.layout is not torch.strided:
        return {"dense": tensor.to_dense()}
    return None


def _of_dtensor(name: str, kind: str, tensor: Any) -> Iterator[_Piece]:  # noqa: ANN401 - a DTensor
    """Yield the part of this rank; of replicas, the first one counts."""
    place = tensor.device_mesh.get_coordinate()
    is_origin = place is not None and not any(place)
    if any(one.is_partial() for one in tensor.placements):  # It is not the sum of its parts' bits.
        whole = tensor.full_tensor()
        yield _Piece(kind, [(0, _words(whole))] if is_origin else (), is_origin)
        return
    is_counted = place is not None and not any(
        here for here, one in zip(place, tensor.placements, strict=True) if one.is_replicate()
    )
    held = local_part(tensor)
    blocks: list[tuple[int, Tensor]] = []
    # What torch's own checkpoints ask a DTensor for: the places of its parts in the whole.
    chunks = tensor.__create_chunk_list__() if is_counted and held.numel() else ()
    begun: list[int] = [0] * held.dim()
    for chunk in chunks:
        if len(chunks) == 1:
            part = held
        else:  # Parts that lie apart in the whole follow each other along one dimension here.
            along = next(
                (d for d in range(held.dim()) if chunk.sizes[d] != held.shape[d]), held.dim() - 1
            )
            part = held.narrow(along, begun[along], chunk.sizes[along])
            begun[along] += chunk.sizes[along]
        blocks += _rows(part, chunk.offsets, tensor.shape)
    yield _Piece(kind, blocks, is_origin)


def _rows(
    part: Tensor, offsets: Sequence[int], whole: Sequence[int]
) -> Iterator[tuple[int, Tensor]]:
    """Yield the words of a part of a tensor, in rows that lie one after another in the whole."""
    words = _words(part)
    width = words.numel() // part.numel()
    strides = [prod(whole[d + 1 :]) for d in range(len(whole))]
    cut = max((d for d in range(len(whole)) if part.shape[d] != whole[d]), default=0)
    length = prod(part.shape[cut:])
    tail = offsets[cut] * strides[cut] if len(whole) else 0
    for number, place in enumerate(product(*map(range, part.shape[:cut]))):
        before = zip(offsets, place, strides, strict=False)
        start = tail + sum((offset + here) * stride for offset, here, stride in before)
        row = words[number * length * width : (number + 1) * length * width]
        yield start * width, row


def _words(tensor: Tensor) -> Tensor:
    """Return the bits of a tensor as integers of at most 32 bits, in one row."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)
    size = flat.element_size()
    return flat.view(_NARROW.get(size, torch.int32))


# --- arithmetic -----------------------------------------------------------------------------------


def _digests(tensors: Mapping[str, Tensor], is_first: bool) -> Tensor:
    pieces: list[_Piece] = []
    owners: list[int] = []
    for number, (name, tensor) in enumerate(tensors.items()):
        found = list(_pieces(name, tensor, is_first))
        pieces += found
        owners += [number] * len(found)
    device = next((t.device for t in tensors.values() if t.device.type != "meta"), None)
    device = device if device is not None else torch.device("cpu")
    constants = [0] * len(tensors)
    sums: dict[torch.device, _Sums] = {}
    for owner, piece in zip(owners, pieces, strict=True):
        factor, constant = _factor(piece.kind)
        if piece.counts:
            constants[owner] += constant
        for start, words in piece.blocks:
            if words.numel():
                own = sums.setdefault(words.device, _Sums(words.device))
                own.add(owner, factor, start, words)
    result = torch.tensor([_signed(one) for one in constants], dtype=torch.int64)
    result = result.to(device, non_blocking=True)
    for own in sums.values():
        own.add_to(result)
    return result


class _Sums:
    """The weighted sums of all chunks on one device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._rows = 1 if device.type == "cpu" else AT_ONCE
        self._weights = _weights_in_chunk(device)
        self._one = torch.empty(CHUNK, dtype=torch.int32, device=device)
        self._many: Tensor | None = None
        self._found: list[Tensor] = []
        self._factors: list[Tensor] = []
        self._owners: list[int] = []

    def add(self, owner: int, factor: int, start: int, words: Tensor) -> None:
        """Add words that begin at a position of a whole."""
        length, done = words.numel(), 0
        first, last = start // CHUNK, (start + length - 1) // CHUNK
        found = torch.empty(last - first + 1, dtype=torch.int64, device=self._device)
        begun = start % CHUNK
        if begun or length < CHUNK:
            done = min(CHUNK - begun, length)
            self._part(words[:done], begun, found[0])
        many = (length - done) // CHUNK
        at = 1 if done else 0
        if many:
            rows = words[done : done + many * CHUNK].view(many, CHUNK)
            self._whole(rows, found[at : at + many])
            done += many * CHUNK
        if done < length:
            self._part(words[done:], 0, found[-1])
        chunks = _weights_of_chunks(self._device, last + 1)[first : last + 1]
        self._found.append(found)
        self._factors.append(chunks * _signed(factor))
        self._owners += [owner] * found.numel()

    def add_to(self, result: Tensor) -> None:
        """Add what was found to the digests of its tensors."""
        weighted = torch.cat(self._found).mul_(torch.cat(self._factors)).to(result.device)
        owners = torch.tensor(self._owners, dtype=torch.int64).to(result.device)
        result.index_add_(0, owners, weighted)

    def _whole(self, rows: Tensor, found: Tensor) -> None:
        if self._rows == 1:
            for row, out in zip(rows.unbind(), found.unbind(), strict=True):
                _mix(row, self._one, self._weights)
                torch.sum(self._one.view(torch.int64), 0, out=out)
            return
        if self._many is None:
            self._many = torch.empty((self._rows, CHUNK), dtype=torch.int32, device=self._device)
        for some, out in zip(
            torch.split(rows, self._rows), torch.split(found, self._rows), strict=True
        ):
            buffer = self._many[: some.shape[0]]
            _mix(some, buffer, self._weights)
            torch.sum(buffer.view(torch.int64), 1, out=out)

    def _part(self, words: Tensor, begun: int, out: Tensor) -> None:
        """Add a part of a chunk. Two words are added up as one number, by their place in it."""
        end = begun + words.numel()
        left, right = begun - begun % 2, end + end % 2
        if left < begun:
            self._one[left] = 0
        if end < right:
            self._one[end] = 0
        _mix(words, self._one[begun:end], self._weights[begun:end])
        torch.sum(self._one[left:right].view(torch.int64), 0, out=out)


def _mix(words: Tensor, buffer: Tensor, weights: Tensor) -> None:
    """Weight words by their position.

    The upper half is first laid over the lower one: a product keeps the highest bit of a word, the
    sign of a number, in its own highest bit, whatever the weight, where two of them would cancel.
    """
    if words.dtype == torch.int32:
        torch.bitwise_right_shift(words, 16, out=buffer)
        buffer.bitwise_and_(_HALF).bitwise_xor_(words).mul_(weights)
    else:
        buffer.copy_(words)
        buffer.mul_(weights)


def _signed(value: int) -> int:
    value %= _WRAP
    return value - _WRAP if value >= _WRAP // 2 else value


@lru_cache(1 << 16)
def _factor(kind: str) -> tuple[int, int]:
    """Return an odd factor and a constant for a piece."""
    found = blake2b(kind.encode(), digest_size=16).digest()
    return int.from_bytes(found[:8], "little") | 1, int.from_bytes(found[8:], "little")


@lru_cache(16)
def _weights_in_chunk(device: torch.device) -> Tensor:
    """Return an odd factor of 32 bits for each place of a chunk."""
    mask = 0xFFFFFFFF
    x = torch.arange(1, CHUNK + 1, dtype=torch.int64).mul_(0x9E3779B1).bitwise_and_(mask)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = x.bitwise_xor_(x >> shift).mul_(factor).bitwise_and_(mask)
    x = x.bitwise_xor_(x >> 16) | 1
    return torch.where(x > mask // 2, x - (1 << 32), x).to(torch.int32).to(device)


_chunks: dict[torch.device, Tensor] = {}


def _weights_of_chunks(device: torch.device, count: int) -> Tensor:
    """Return an odd factor of 64 bits for each chunk of a tensor."""
    known = _chunks.get(device)
    if known is None or len(known) < count:
        wanted = max(1024, 1 << (count - 1).bit_length())
        values = [_signed(_splitmix(place) | 1) for place in range(wanted)]
        _chunks[device] = known = torch.tensor(values, dtype=torch.int64).to(device)
    return known


def _splitmix(place: int) -> int:
    x = (place + 1) * 0x9E3779B97F4A7C15 % _WRAP
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % _WRAP
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % _WRAP
    return x ^ (x >> 31)
