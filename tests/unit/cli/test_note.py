import json


def test_a_note_is_written_shown_and_removed(invoke):
    tagged = ("tags=[swept]", "notes=from the config")
    invoke("train", "config.yaml", *tagged, "--run-dir", "one", "--quiet", "max_iters=1")
    assert "from the config" in invoke("runs", ".").output
    assert "swept" in invoke("runs", ".").output
    assert invoke("note", "one", "the one of the paper").exit_code == 0
    assert invoke("note", "one").output == "one: the one of the paper\n"
    assert "the one of the paper" in invoke("runs", ".").output
    assert json.loads(invoke("note", "one", "", "--json").stdout)["note"] == ""
