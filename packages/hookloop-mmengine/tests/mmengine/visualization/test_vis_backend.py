"""The backends of projects."""

import pytest

from hookloop_mmengine.visualization import backends, vis_backend
from hookloop_mmengine.visualization.vis_backend import BaseVisBackend, force_init_env


class Own(BaseVisBackend):
    prepared = 0

    def _init_env(self):
        self.prepared += 1

    @property
    @force_init_env
    def experiment(self):
        return self

    @force_init_env
    def add_scalar(self, name, value, step=0, **kwargs):
        return name, value, step


def test_a_backend_is_prepared_once_and_when_it_is_used():
    own = Own()
    assert own.prepared == 0
    assert own.add_scalar("a", 1, step=2) == ("a", 1, 2)
    assert own.experiment is own
    assert own.prepared == 1

    class Bare:
        @force_init_env
        def use(self): ...

    with pytest.raises(AttributeError, match="does not have _init_env"):
        Bare().use()


def test_the_path_has_the_backends():
    assert vis_backend.LocalVisBackend is backends.LocalVisBackend
    with pytest.raises(ImportError, match="WandbVisBackend is not offered"):
        _ = vis_backend.WandbVisBackend
