import pytest
from tests.readback import mlflow_client, png

from hookloop.errors import HookError
from hookloop.writers.mlflow import MLflow, check_uri
from hookloop.writers.records import Config, Image, Scalars, Table, Text

pytestmark = pytest.mark.slow  # It creates databases.


def open_writer(directory, **options):
    return MLflow(f"file:{directory}", "digits", **options)


def test_the_config_becomes_parameters_that_a_resume_cannot_change(tmp_path):
    writer = open_writer(tmp_path, run_name="first")
    writer.write_config({"optimizer": {"lr": 0.1}, "max_epochs": 2})
    writer.close()
    again = open_writer(tmp_path, run_id=writer.run_id)
    again.write_config({"optimizer": {"lr": 0.1}, "max_epochs": 4, "new": 1})
    again.close()
    run = mlflow_client(tmp_path).get_run(writer.run_id)
    assert run.data.params == {"optimizer.lr": "0.1", "max_epochs": "2", "new": "1"}
    assert (run.info.run_name, run.info.status) == ("first", "FINISHED")


def test_a_name_may_be_the_start_of_another_name(tmp_path):
    writer = open_writer(tmp_path)
    writer.write([Scalars({"val/loss": 1.0, "val/loss/max": 2.0, "val/AR@100": 3.0}, 1)])
    writer.close()
    metrics = mlflow_client(tmp_path).get_run(writer.run_id).data.metrics
    assert metrics == {"val/loss": 1.0, "val/loss.max": 2.0, "val/AR_100": 3.0, "epoch": 0.0}


def test_many_and_long_parameters_are_accepted(tmp_path):
    writer = open_writer(tmp_path)
    writer.write_config({f"p{index}": "x" * 1000 for index in range(250)})
    writer.close()
    params = mlflow_client(tmp_path).get_run(writer.run_id).data.params
    assert len(params) == 250 and len(params["p7"]) == 500


def test_images_text_and_tables_become_artifacts(tmp_path):
    writer = open_writer(tmp_path / "store")
    kept = tmp_path / "kept.csv"
    kept.write_text("a\n", encoding="utf-8")
    writer.write(
        [
            Image("val/sample", [[0.0, 1.0]], 3),
            Text("note", "hello", 3),
            Table("scores", ["a"], [[1]], 3),
            Table("val/kept", ["a"], [], 3, file=kept),
            Config({}),
        ]
    )
    writer.close()
    (artifacts,) = (tmp_path / "store").glob("*/*/artifacts")
    assert png(artifacts / "val/sample/00000003.png").tolist() == [[0, 255]]
    assert (artifacts / "note/00000003.md").read_text(encoding="utf-8") == "hello"
    assert (artifacts / "scores/00000003.csv").read_text(encoding="utf-8") == "a\n1\n"
    assert (artifacts / "val/kept.csv").is_file()


def test_the_status_of_the_run_is_set_when_it_is_closed(tmp_path):
    writer = open_writer(tmp_path)
    writer.status = "FAILED"
    writer.close()
    assert mlflow_client(tmp_path).get_run(writer.run_id).info.status == "FAILED"


def test_half_written_lines_are_removed_on_resume(tmp_path):
    writer = open_writer(tmp_path)
    writer.write([Scalars({"a": 1.0, "b": 2.0}, 1)])
    (folder,) = tmp_path.glob(f"*/{writer.run_id}/metrics")
    (folder / "a").write_bytes(b"")
    with (folder / "b").open("ab") as file:
        file.write(b"17 2.")
    again = open_writer(tmp_path, run_id=writer.run_id)
    assert dict(again.held()) == {"b": 1, "epoch": 1}
    again.close()


def test_a_database_needs_an_existing_directory(tmp_path):
    check_uri(f"sqlite:///{tmp_path}/mlflow.db")
    check_uri("https://mlflow.example.com")
    with pytest.raises(HookError, match="there is no directory '.*absent' to write in"):
        check_uri(f"sqlite:///{tmp_path}/absent/mlflow.db")


def test_an_sqlite_database_holds_a_run(tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    writer = MLflow(uri, "digits")
    writer.write([Scalars({"val/loss": 1.0}, 3)])
    writer.close()
    again = MLflow(uri, "digits", run_id=writer.run_id)
    assert dict(again.held()) == {"val/loss": 3, "epoch": 3}


def test_only_the_metric_that_the_store_rejects_is_left_out(tmp_path, caplog):
    writer = open_writer(tmp_path)
    for step in (1, 2):
        # In a directory, val is a folder and cannot be a file.
        writer.write(
            [Scalars({"val/loss": 1.0}, step), Scalars({"val": 2.0, "../a//b": 3.0}, step)]
        )
    metrics = mlflow_client(tmp_path).get_run(writer.run_id).data.metrics
    assert metrics == {"val/loss": 1.0, "a/b": 3.0, "epoch": 0.0}
    assert caplog.text.count("MLflow rejects the metric 'val'") == 1
