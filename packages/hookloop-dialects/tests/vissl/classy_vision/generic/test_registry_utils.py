"""Files of a folder that register parts."""

import sys

from hookloop_dialects.vissl.classy_vision.generic.registry_utils import import_all_modules


def test_every_module_of_a_folder_is_imported(tmp_path, monkeypatch):
    (tmp_path / "parts_of_mine").mkdir()
    for name in ("__init__", "one", "_hidden"):
        (tmp_path / "parts_of_mine" / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    import_all_modules(tmp_path / "parts_of_mine", "parts_of_mine")
    assert "parts_of_mine.one" in sys.modules
    assert "parts_of_mine._hidden" not in sys.modules
