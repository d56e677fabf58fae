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

SMALL = 16_384
"""Numbers that are sent to all at once: for so few, two exchanges of slices cost more."""

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


class TreeSum:
    """Sums flat tensors over all leaves of all processes.

    What it needs is allocated once: to get new memory of 40 MB takes longer than to send it.

    Args:
        covers: The subtrees of each process.
        rank: The number of this process.
        leaves: How many leaves the whole tree has.
    """

    def __init__(self, covers: Sequence[Sequence[Node]], rank: int, leaves: int) -> None:
        self._covers = covers
        self._rank = rank
        self._leaves = leaves
        self._received: dict[Node, Tensor] = {}
        self._sum: Tensor | None = None

    def sum(self, own: Mapping[Node, Tensor]) -> Tensor:
        """Return the sum of all leaves on every process; it is valid until the next one.

        Args:
            own: The sums of this process's subtrees: flat tensors of the same length and type,
                which are used up.
        """
        if len(self._covers) == 1:
            return add_up(own, self._leaves, Tensor.add_)
        like = next(iter(own.values()))
        ranks = len(self._covers)
        if len(like) <= SMALL:
            return self._sum_of_all(own, like)
        ends = [len(like) * part // ranks for part in range(ranks + 1)]
        places = [slice(ends[part], ends[part + 1]) for part in range(ranks)]
        mine = places[self._rank]
        if self._sum is None or len(self._sum) != len(like):
            self._sum = torch.empty_like(like)
            others = [node for rank, nodes in enumerate(self._covers) for node in nodes]
            self._received = {
                node: like.new_empty(mine.stop - mine.start) for node in others if node not in own
            }
        # A slice of each subtree to the process that adds it, and what that is added up to back.
        _exchange(
            self._rank,
            [[own[node][place] for node in own] for place in places],
            [[self._received.get(node, like) for node in nodes] for nodes in self._covers],
        )
        slices = {**self._received, **{node: values[mine] for node, values in own.items()}}
        self._sum[mine] = add_up(slices, self._leaves, Tensor.add_)
        whole = [[self._sum[place]] for place in places]
        _exchange(self._rank, [whole[self._rank]] * ranks, whole)
        return self._sum

    def _sum_of_all(self, own: Mapping[Node, Tensor], like: Tensor) -> Tensor:
        """Return the sum of what is small: each process gets all subtrees, and adds all of it."""
        import torch.distributed as dist

        most = max(map(len, self._covers))
        sent = like.new_zeros(most, len(like))
        torch.stack([*own.values()], out=sent[: len(own)])
        received = like.new_empty(len(self._covers), most, len(like))
        # Newer versions of torch warn of the old name.
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        gather(received.view(-1), sent.view(-1))
        parts = {
            node: received[rank, at]
            for rank, nodes in enumerate(self._covers)
            for at, node in enumerate(nodes)
        }
        return add_up(parts, self._leaves, Tensor.add_)


def _exchange(
    rank: int, sent: Sequence[Sequence[Tensor]], received: Sequence[Sequence[Tensor]]
) -> None:
    """Send tensors to each other process, and receive as many as it has.

    Not by `all_to_all_single` and `all_gather_single`: gloo copies what it gathers, and both want
    all parts in one piece.
    """
    import torch.distributed as dist

    operations = []
    for other in [other for other in range(len(sent)) if other != rank]:
        for number, tensor in enumerate(received[other]):
            if tensor.numel():
                operations.append(dist.P2POp(dist.irecv, tensor, other, tag=number))
        for number, tensor in enumerate(sent[other]):
            if tensor.numel():
                operations.append(dist.P2POp(dist.isend, tensor, other, tag=number))
    for work in dist.batch_isend_irecv(operations) if operations else ():
        work.wait()
