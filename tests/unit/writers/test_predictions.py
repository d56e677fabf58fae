import re
import signal

import numpy as np
import pytest

from hookloop.errors import DataError
from hookloop.writers.predictions import FORMATS, check_file, writing

BATCHES = [
    {"score": np.arange(4, dtype=np.float32).reshape(2, 2), "label": np.array([1, 0])},
    {"score": np.full((1, 2), 9, dtype=np.float32), "label": np.array([1])},
]


def write(path, batches=BATCHES, *, is_whole=True):
    with writing(path) as file:
        for batch in batches:
            file.add(batch)
        file.is_whole = is_whole


def read_parquet(path):
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(path).to_pydict()


def test_csv_has_a_row_per_sample(tmp_path):
    write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == (
        "id,score_0,score_1,label\n0,0.0,1.0,1\n1,2.0,3.0,0\n2,9.0,9.0,1\n"
    )


def test_npz_keeps_arrays_as_they_are(tmp_path):
    write(tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as arrays:
        assert arrays["score"].dtype == np.float32
        assert arrays["score"].tolist() == [[0, 1], [2, 3], [9, 9]]
        assert arrays["label"].tolist() == [1, 0, 1]


def test_parquet_has_a_column_per_number(tmp_path):
    write(tmp_path / "out.parquet")
    assert read_parquet(tmp_path / "out.parquet") == {
        "id": [0, 1, 2],
        "score_0": [0, 2, 9],
        "score_1": [1, 3, 9],
        "label": [1, 0, 1],
    }


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_numbers_of_another_type_are_converted_without_loss_or_rejected(tmp_path, suffix):
    file = tmp_path / f"out{suffix}"
    whole, half = {"x": np.array([1, 2])}, {"x": np.array([0.5])}
    write(file, [half, whole])
    read = np.load(file)["x"] if suffix == ".npz" else read_parquet(file)["x"]
    assert list(read) == [0.5, 1, 2]
    with pytest.raises(DataError, match="return the same type for each batch"):
        write(file, [whole, half])


@pytest.mark.parametrize("suffix", FORMATS)
def test_only_a_whole_file_replaces_the_old_one(tmp_path, suffix):
    file = tmp_path / f"out{suffix}"
    file.write_text("old")
    write(file, is_whole=False)
    with pytest.raises(DataError, match="batch 2 has another form"):
        write(file, [BATCHES[0], {"score": np.ones((1, 3)), "label": np.array([1])}])
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_text_fits_a_table_and_no_array(tmp_path):
    names = [{"name": np.array(["cat"])}, {"name": np.array(["a longer name"])}]
    write(tmp_path / "out.csv", names)
    assert (tmp_path / "out.csv").read_text() == "id,name\n0,cat\n1,a longer name\n"
    with pytest.raises(DataError, match="is text"):
        write(tmp_path / "out.npz", names)


def test_numbers_that_parquet_does_not_know_are_rejected(tmp_path):
    with pytest.raises(
        DataError, match=r"cannot hold these columns .*wave complex64.*Write another kind"
    ):
        write(tmp_path / "a.parquet", [{"wave": np.ones(3, np.complex64)}])
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_rejected_first(tmp_path):
    with pytest.raises(DataError, match=r"must end in .csv, .parquet, .npz"):
        check_file(tmp_path / "out.txt")
    with pytest.raises(DataError, match="there is no directory"):
        check_file(tmp_path / "nowhere" / "out.csv")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_disk_that_fills_up_is_reported_with_the_file(tmp_path, suffix):
    resource = pytest.importorskip("resource")
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"out{suffix}"
    file.write_text("old")
    noise = np.random.default_rng(0).random((4096, 8))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # Files that may not grow fail as they do on a full disk, with an OSError.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(
            DataError, match=re.escape(f"written to '{file}': ") + ".*File too large"
        ):
            write(file, [{"score": noise}] * 8)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert [one.name for one in tmp_path.iterdir()] == [file.name]
    assert file.read_text() == "old"


def test_an_error_of_the_model_or_the_data_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="a picture"), writing(tmp_path / "out.csv"):
        raise FileNotFoundError("a picture")


def test_a_prediction_that_ends_early_is_reported(tmp_path, caplog):
    write(tmp_path / "out.csv", is_whole=False)
    assert f"'{tmp_path / 'out.csv'}' was not written" in caplog.text
