"""The registries that those of all projects are children of."""

from hookloop_mmengine.registry import FUNCTIONS, Registry, root


def test_all_have_one_scope_and_no_parent():
    found = [one for one in vars(root).values() if isinstance(one, Registry)]
    assert len(found) > 20
    assert {one.scope for one in found} == {"mmengine"}
    assert {one.parent for one in found} == {None}


def test_functions_have_the_names_of_configs():
    assert FUNCTIONS.get("pseudo_collate").__name__ == "pseudo_collate"


def test_a_registry_is_not_a_name_in_itself():
    assert root.OPTIM_WRAPPERS.get("OPTIMIZERS") is None
    assert root.OPTIM_WRAPPERS.get("OptimWrapper") is not None
