import logging

import pytest
import torch
from safetensors.torch import save_file
from tests.names import epoch_file
from tests.tiny import make_model, make_trainer, weights
from tests.unit.checkpoint.sharding import run_ranks

import hookloop
from hookloop.checkpoint.shards.writing import stage, write
from hookloop.checkpoint.state.pretrained import Pretrained
from hookloop.errors import CheckpointError
from hookloop.hooks import AverageWeights, SaveCheckpoint


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_it_is_a_public_name():
    assert hookloop.Pretrained is Pretrained


@pytest.mark.parametrize("form", ["plain", "model", "state_dict", "module", "safetensors"])
def test_every_common_form_of_a_file_is_taken(tmp_path, form):
    source = weights(make_model(1))
    path = tmp_path / "model.pth"
    if form == "safetensors":
        path = tmp_path / "model.safetensors"
        save_file(source, path)
    elif form == "module":
        torch.save({"state_dict": {f"module.{name}": one for name, one in source.items()}}, path)
    else:
        torch.save(source if form == "plain" else {form: source, "epoch": 3}, path)
    model = make_model(2)
    report = Pretrained(path).load_into(model)
    assert same(source, weights(model))
    assert sorted(report.loaded) == sorted(source)
    assert str(report) == "4 tensors loaded"


def test_names_are_stripped_and_renamed(tmp_path):
    source = weights(make_model(1))
    torch.save({f"backbone.layer{name}": one for name, one in source.items()}, tmp_path / "m.pth")
    model = make_model(2)
    Pretrained(
        tmp_path / "m.pth", rename={r"^layer(\d)": r"\1"}, strip_prefix=["backbone."]
    ).load_into(model)
    assert same(source, weights(model))


def test_what_does_not_fit_is_rejected_with_all_names(tmp_path):
    source = weights(make_model(1))
    source["extra"] = torch.ones(1)
    source["0.weight"] = torch.ones(2, 2)
    del source["2.bias"]
    torch.save(source, tmp_path / "m.pth")
    model = make_model(2)
    before = weights(model)
    with pytest.raises(CheckpointError) as caught:
        Pretrained(tmp_path / "m.pth").load_into(model)
    assert "2 tensors loaded; 1 missing: 2.bias; 1 unexpected: extra; " in str(caught.value)
    assert "1 mismatched: 0.weight (2, 2) instead of (8, 4)" in str(caught.value)
    assert same(before, weights(model))


def test_partial_loading_takes_what_fits_and_reports_the_rest(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    source = weights(make_model(1))
    source["head.weight"] = source.pop("2.weight")
    torch.save(source, tmp_path / "m.pth")
    model = make_model(2)
    before = weights(model)
    report = Pretrained(tmp_path / "m.pth", partial=True).load_into(model)
    assert (report.missing, report.unexpected) == (["2.weight"], ["head.weight"])
    after = weights(model)
    assert torch.equal(after["0.weight"], source["0.weight"])
    assert torch.equal(after["2.weight"], before["2.weight"])
    assert "1 missing: 2.weight; 1 unexpected: head.weight" in caplog.text


def test_a_file_without_any_fitting_name_is_rejected_even_partially(tmp_path):
    torch.save({"other": torch.ones(1)}, tmp_path / "m.pth")
    with pytest.raises(CheckpointError, match="does not fit the model: 0 tensors loaded"):
        Pretrained(tmp_path / "m.pth", partial=True).load_into(make_model())


def test_for_a_file_without_weights_the_error_lists_what_it_has(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "m.pth")
    with pytest.raises(CheckpointError, match="state_dict"):
        Pretrained(tmp_path / "m.pth").load_into(make_model())


def test_the_averaged_weights_can_be_taken(tmp_path):
    hooks = [AverageWeights(momentum=0.1), SaveCheckpoint()]
    make_trainer(hooks=hooks, run_dir=tmp_path).train()
    saved = torch.load(tmp_path / epoch_file(1), weights_only=True)
    model = make_model(2)
    Pretrained(tmp_path / epoch_file(1), averaged=True).load_into(model)
    assert same(dict(saved["averaged"]), weights(model))
    assert not same(dict(saved["model"]), weights(model))


def test_a_run_starts_with_the_weights_and_nothing_else(tmp_path):
    first = make_trainer(hooks=[SaveCheckpoint()], run_dir=tmp_path / "one")
    first.train()
    trainer = make_trainer(
        setup={"load_from": tmp_path / f"one/{epoch_file(1)}"}, model=make_model(5)
    )

    @trainer.on("before_train")
    def look(run):
        assert same(weights(first.run.model), weights(run.model))
        assert run.progress.iter == 0

    trainer.train()
    assert trainer.run.progress.iter == 3


def test_a_directory_of_shards_is_taken(tmp_path):
    model, averaged = make_model(), make_model()
    state = {"model": model.state_dict(), "averaged": averaged.state_dict()}
    # Only the model is sure to be among the shards; what is not sharded is in the rest.
    write(stage(state), tmp_path / "iter_1")
    for taken, other in ((False, model), (True, averaged)):
        fresh = make_model()
        report = Pretrained(tmp_path / "iter_1", averaged=taken).load_into(fresh)
        assert not report.missing and same(fresh.state_dict(), other.state_dict())


@pytest.mark.slow
def test_a_sharded_model_takes_the_weights_of_a_file(tmp_path):
    run_ranks(
        tmp_path,
        3,
        """
        from hookloop.checkpoint.state.pretrained import Pretrained

        plain, _ = build(seed=5, shard=False)
        if rank == 0:
            torch.save(plain.state_dict(), home / "plain.pth")
        dist.barrier()
        model, _ = build()
        Pretrained(home / "plain.pth").load_into(model)
        for name, value in model.state_dict().items():
            assert torch.equal(full(value), plain.state_dict()[name]), name
        """,
    )
