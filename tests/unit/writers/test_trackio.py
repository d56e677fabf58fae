from tests.readback import trackio_logs

from hookloop.writers.records import Histogram, Image, Table, Text
from hookloop.writers.trackio import Trackio


def test_every_kind_of_record_is_in_the_local_database(capsys):
    writer = Trackio("unit", run_name="all kinds", config={"lr": 0.1})
    writer.write_scalar("train/loss", 0.5, 3)
    writer.write(
        [
            Image("val/sample", [[0.0, 1.0]], 3, "a caption"),
            Histogram("weights", [1.0, 2.0], 3),
            Text("note", "hello", 3),
            Table("scores", ["a"], [[1]], 3),
        ]
    )
    writer.close()
    logs = trackio_logs("unit", "all kinds")
    assert logs[0]["train/loss"] == 0.5 and {log["step"] for log in logs} == {3}
    kinds = {
        key: value["_type"] for log in logs for key, value in log.items() if type(value) is dict
    }
    assert kinds == {
        "val/sample": "trackio.image",
        "weights": "trackio.histogram",
        "note": "trackio.markdown",
        "scores": "trackio.table",
    }
    assert capsys.readouterr().out == ""
