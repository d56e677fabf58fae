"""Sums over logical ranks, in an order that does not depend on how many processes there are.

The order is that of one binary tree whose leaves are the logical ranks. A process adds up the
whole subtrees among its own leaves. Then each process adds a slice of everything that all of them
have, along the rest of the tree, and the slices are gathered again: as much is sent as in an
all-reduce, where each process has one subtree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


class Node(NamedTuple):
    """A subtree: so many leaves from the first one, a power of two.

    Attributes:
        first: Its first leaf.
        size: How many leaves it has room for; the last of them may not exist.
    """

    first: int
    size: int


def cover(first: int, end: int) -> list[Node]:
    """Return the largest subtrees within a range of leaves, in order.

    >>> cover(1, 6)
    [Node(first=1, size=1), Node(first=2, size=2), Node(first=4, size=2)]
    """
    nodes: list[Node] = []
    for leaf in range(first, end):
        node = Node(leaf, 1)
        while nodes and _are_siblings(nodes[-1], node):
            node = Node(nodes.pop().first, 2 * node.size)
        nodes.append(node)
    return nodes


def _are_siblings(left: Node, right: Node) -> bool:
    is_left = left.first % (2 * left.size) == 0
    return left.size == right.size and is_left and right.first == left.first + left.size


class Partial(Generic[T]):
    """Adds up values of leaves that come in order, and keeps one for each whole subtree.

    Args:
        add: Returns the sum of two values.

    >>> partial = Partial(lambda left, right: f"({left}+{right})")
    >>> for leaf in range(1, 6):
    ...     partial.append(leaf, str(leaf))
    >>> partial.values
    ['1', '(2+3)', '(4+5)']
    """

    def __init__(self, add: Callable[[T, T], T]) -> None:
        self._add = add
        self.nodes: list[Node] = []
        self.values: list[T] = []

    def append(self, leaf: int, value: T) -> None:
        """Add the value of the next leaf; what is whole is added up at once."""
        node = Node(leaf, 1)
        while self.nodes and _are_siblings(self.nodes[-1], node):
            node = Node(self.nodes.pop().first, 2 * node.size)
            value = self._add(self.values.pop(), value)
        self.nodes.append(node)
        self.values.append(value)


def add_up(values: Mapping[Node, T], leaves: int, add: Callable[[T, T], T]) -> T:
    """Add values of subtrees that together are the whole tree, in its order.

    >>> values = {node: f"{node.first}-{node.first + node.size - 1}" for node in cover(0, 5)}
    >>> add_up(values, 5, lambda left, right: f"({left}+{right})")
    '(0-3+4-4)'
    """

    def below(node: Node) -> T:
        if node in values:
            return values[node]
        half = node.size // 2
        left = below(Node(node.first, half))
        if node.first + half >= leaves:  # Nothing is there.
            return left
        return add(left, below(Node(node.first + half, half)))

    size = 1
    while size < leaves:
        size *= 2
    return below(Node(0, size))


def sum_over_processes(
    own: Mapping[Node, Tensor], covers: Sequence[Sequence[Node]], rank: int, leaves: int
) -> Tensor:
    """Return the sum of all leaves on every process.

    Args:
        own: The sums of this process's subtrees: flat tensors of the same length and type.
        covers: The subtrees of each process.
        rank: The number of this process.
        leaves: How many leaves the whole tree has.
    """
    if len(covers) == 1:
        return add_up(own, leaves, torch.add)
    import torch.distributed as dist

    ranks = len(covers)
    like = next(iter(own.values()))
    length = len(like)
    slice_length = -(-length // ranks)
    padded = [_padded(own[node], slice_length * ranks).view(ranks, -1) for node in covers[rank]]
    sent = torch.stack(padded, dim=1).reshape(-1)  # For each process its slice of each subtree.
    counts = [len(nodes) * slice_length for nodes in covers]
    received = like.new_empty(sum(counts))
    dist.all_to_all_single(received, sent, counts, [len(padded) * slice_length] * ranks)
    every = [node for nodes in covers for node in nodes]
    slices = dict(zip(every, received.view(len(every), slice_length).unbind(), strict=True))
    summed = like.new_empty(slice_length * ranks)
    # Newer versions of torch warn of the old name.
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    gather(summed, add_up(slices, leaves, torch.add).contiguous())
    return summed[:length]


def _padded(flat: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(flat, (0, length - len(flat)))
