import subprocess
import sys

import pytest

import hookloop
from hookloop.lazy import load_name


def test_a_name_is_imported_and_kept():
    namespace = {}
    found = load_name(namespace, "hookloop.every", "Every")
    assert found is hookloop.Every
    assert namespace == {"Every": hookloop.Every}


def test_what_is_not_there_is_an_error_of_python():
    with pytest.raises(AttributeError):
        load_name({}, "hookloop.every", "Evry")
    with pytest.raises(ModuleNotFoundError):
        load_name({}, "hookloop.nothing", "Every")


@pytest.mark.slow
@pytest.mark.parametrize("package", ["hookloop", "hookloop.writers"])
def test_importing_a_package_does_not_import_torch(package):
    code = f"import sys, {package}; dir({package}); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
