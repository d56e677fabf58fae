import json


def test_tags_are_given_shown_and_removed(invoke):
    invoke("train", "config.yaml", "--run-dir", "one", "--quiet", "max_iters=1")
    assert invoke("tag", "one").output == "one: no tags\n"
    assert invoke("tag", "one", "baseline", "best").output == "one: baseline, best\n"
    removed = invoke("tag", "one", "best", "--remove", "--json")
    assert json.loads(removed.stdout)["tags"] == ["baseline"]
    listed = json.loads(invoke("runs", ".", "--filter", "tag=baseline", "--json").stdout)
    assert [run["tags"] for run in listed] == [["baseline"]]
    assert invoke("tag", "none", "x").exit_code == 2
