"""The schema for editors accepts what we accept, and marks what it can see."""

from pathlib import Path

import pytest
import yaml

import hookloop.hooks
from hookloop.config.json_schema import argument_docs, make_schema, schema_of
from hookloop.config.other_keys import other_keys
from hookloop.config.schema import KEYS
from hookloop.every import Every

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[3]
CONFIGS = [*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("tests/docs_project/*.yaml")]


@pytest.fixture(scope="module")
def validator():
    schema = make_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_our_configs_fit(validator, path: Path) -> None:
    assert not list(validator.iter_errors(yaml.safe_load(path.read_text())))


@pytest.mark.parametrize(
    "text",
    [
        "max_epochs: ${vars.n}",
        "val_every: 500",
        "val_every: 10 min",
        "hooks: [StopAfter, my.Hook, {my.Hook: {x: 1}}, {my.Hook: }, {type: {ref: my.Hook}}]",
        "hooks: {stop: {type: StopAfter, epochs: 3}, gone: null, my.Hook: {x: 1}}",
        "hooks: {StopAfter: {epochs: 3, priority: LOW, every: 2 epochs}}",
        "hooks: [{WriteCSV: {dialect: emloop, output_file: x}}]",
        "hooks: [{ExportModel: {inputs: {ref: my.inputs}}}]",
        "default_hooks: false",
        "default_hooks: {checkpoint: {best: val/x}, console: null, nan: my.Hook, other: {type: X}}",
        "optimizer: {a: {type: Adam, lr: 0.1}, b: my.Optimizer}",
        "compile: {mode: max-autotune}",
        "_base_: [a.yaml, b.yaml]",
        "setup: {load_from: {path: x.pth, partial: true}}",
    ],
)
def test_what_we_accept_fits(validator, text: str) -> None:
    assert not [error.message for error in validator.iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize(
    "text",
    [
        "modle: my.Net",
        "max_epochs: 0",
        "max_epochs: three",
        "val_at_start: 3",
        "precision: fp8",
        "hooks: [{StopAfter: {epoch: 3}}]",
        "hooks: [{type: StopAfter, epoch: 3}]",
        "hooks: [{StopAfter: {epochs: three}}]",
        "hooks: {StopAfter: {epoch: 3}}",
        "hooks: {stop: {type: StopAfter, epoch: 3}}",
        "default_hooks: {checkpoint: {bst: val/x}}",
    ],
)
def test_what_can_be_seen_is_rejected(validator, text: str) -> None:
    assert list(validator.iter_errors(yaml.safe_load(text)))


def test_every_key_and_hook_is_described() -> None:
    schema = make_schema()
    keys = schema["properties"]
    assert set(keys) == {*KEYS, *other_keys(), "_base_"}
    assert keys["clip_norm"]["description"] == "Limit of the gradients' norm; None for no limit."
    for name in hookloop.hooks.__all__:
        assert schema["definitions"][f"arguments-{name}"]["description"]


def test_types_become_schemas() -> None:
    assert schema_of(Every | int | str) == {
        "anyOf": [{"type": ["string", "integer"]}, {"type": "integer"}, {"type": "string"}]
    }
    assert schema_of(list[str] | dict[str, int]) == {
        "anyOf": [{"type": "array"}, {"type": "object"}]
    }
    assert schema_of(object) == {} and schema_of(float | Path.__class__) == {}


def test_descriptions_come_from_the_docstring() -> None:
    def function() -> None:
        """Do it.

        Args:
            one: The first,
                in two lines.
            two: The second.

        Returns:
            nothing: at all.
        """

    assert argument_docs(function) == {"one": "The first, in two lines.", "two": "The second."}
