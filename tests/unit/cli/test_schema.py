"""``hookloop schema``: a JSON Schema for editors."""

import json

from tests.unit.cli.conftest import Invoke


def test_it_is_json_with_the_keys_of_a_config(invoke: Invoke) -> None:
    result = invoke("schema")
    assert result.exit_code == 0, result.output
    schema = json.loads(result.stdout)
    assert schema["title"] == "hookloop config" and "optimizer" in schema["properties"]
