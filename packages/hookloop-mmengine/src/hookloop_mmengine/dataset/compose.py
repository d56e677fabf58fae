"""``mmengine.dataset.Compose``: chains of transforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Transform = Callable[[object], object]


class Compose:
    """A chain of transforms; the first one that returns None drops the sample.

    Args:
        transforms: Functions, or dicts that describe them.
    """

    def __init__(self, transforms: Sequence[Transform | Mapping[str, object]] | None) -> None:
        from hookloop_mmengine.registry import TRANSFORMS

        self.transforms: list[Transform] = []
        for entry in transforms or ():
            transform = TRANSFORMS.build(entry) if isinstance(entry, Mapping) else entry
            if not callable(transform):
                raise TypeError(f"transform should be a callable object, but got {transform!r}")
            self.transforms.append(transform)

    def __call__(self, data: object) -> object:
        for transform in self.transforms:
            data = transform(data)
            # Detection pipelines drop samples without a valid box this way.
            if data is None:
                return None
        return data

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(" + "".join(f"\n    {one}" for one in self.transforms) + "\n)"
        )
