"""The class that hook files import for their annotations."""

import pytest

from hookloop import dialects
from hookloop_dialects.emloop.models import AbstractModel


class Mine(AbstractModel):
    """Has everything that a model of emloop needs."""

    input_names = ("x",)
    output_names = ("y",)

    def __init__(self, **kwargs):
        pass

    def run(self, batch, train, stream):
        return {}

    def save(self, name_suffix):
        return name_suffix


def test_a_model_of_emloop_has_to_run_and_save():
    with pytest.raises(TypeError, match="abstract"):
        AbstractModel(None, "log")
    assert Mine().save("best") == "best"


def test_hook_files_find_it_in_its_module():
    with dialects.alias("emloop"):
        import emloop as el
        from emloop.models.abstract_model import AbstractModel as Found
    assert Found is AbstractModel is el.AbstractModel is el.models.AbstractModel
