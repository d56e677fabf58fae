import pytest

from hookloop.errors import HookloopError
from hookloop.runs.layout import RunDir
from hookloop.runs.tags import (
    FILE,
    Labels,
    add_tags,
    open_run,
    read_labels,
    remove_tags,
    set_note,
)


@pytest.fixture
def run(tmp_path):
    made = RunDir.create(tmp_path / "run")
    made.write_summary({"status": "completed"})
    return made


def test_tags_and_a_note_are_kept_beside_the_run(run):
    assert read_labels(run) == Labels()
    add_tags(run, ["baseline", "best"])
    add_tags(run, ["best", "paper"])
    set_note(run, "the one of\nthe paper")
    assert remove_tags(run, ["best"]) == read_labels(run)
    assert read_labels(run) == Labels(("baseline", "paper"), "the one of\nthe paper")


@pytest.mark.parametrize("tag", ["", "two words", "a,b", "a=b", "x" * 101, "a\nb"])
def test_a_tag_is_a_word(run, tag):
    with pytest.raises(HookloopError, match="is not a tag"):
        add_tags(run, [tag])


def test_what_cannot_be_done_is_rejected(run, tmp_path):
    with pytest.raises(HookloopError, match="no tag 'x'. Its tags are: none"):
        remove_tags(run, ["x"])
    with pytest.raises(HookloopError, match="at most 100 tags"):
        add_tags(run, map(str, range(101)))
    with pytest.raises(HookloopError, match="at most"):
        set_note(run, "x" * 100_001)
    with pytest.raises(HookloopError, match="not the directory of a run"):
        open_run(tmp_path)
    assert open_run(run.path) == run


@pytest.mark.parametrize("text", ["{", "[]", '{"tags": 3, "note": []}', '{"tags": [1]}'])
def test_a_damaged_file_has_no_tags(run, text):
    (run.path / FILE).write_text(text)
    assert read_labels(run) == Labels()


def test_a_link_is_replaced_and_not_followed(run, tmp_path):
    (tmp_path / "other").write_text("mine")
    (run.path / FILE).symlink_to(tmp_path / "other")
    add_tags(run, ["a"])
    assert read_labels(run).tags == ("a",)
    assert (tmp_path / "other").read_text() == "mine"


def test_the_config_may_have_tags_too():
    labels = Labels(("a",), "own")
    assert labels.with_config({"tags": "b", "notes": "config"}) == Labels(("b", "a"), "own")
    assert labels.with_config({"tags": 3}) == labels
