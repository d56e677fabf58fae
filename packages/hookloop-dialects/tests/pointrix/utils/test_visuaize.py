"""The older spelling of a module."""

from hookloop import dialects
from hookloop_dialects.pointrix.utils import visualize


def test_older_files_find_the_same_functions():
    with dialects.alias("pointrix"):
        from pointrix.utils import visuaize
    for name in visuaize.__all__:
        assert getattr(visuaize, name) is getattr(visualize, name)
