"""A hook under the name of cxflow's first versions."""

from tests.tiny import make_data, make_trainer

from hookloop import dialects


def test_a_file_of_that_time_collects_values_of_an_epoch(tmp_path):
    with dialects.alias("emloop"):
        from cxflow.hooks.abstract_hook import AbstractHook
        from cxflow.hooks.accumulating_hook import AccumulatingHook

    class Count(AccumulatingHook):
        def after_epoch(self, epoch_data: AbstractHook.EpochData, **kwargs):
            for stream, kept in self._accumulator.items():
                epoch_data[stream]["count"] = len(kept["loss"])
            super().after_epoch(**kwargs)

    class Look(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            self.counts = {stream: values["count"] for stream, values in epoch_data.items()}

    look = Look()
    make_trainer(
        hooks=[Count(variables=["loss"]), look], val_data=make_data(4), run_dir=tmp_path / "run"
    ).train()
    assert look.counts == {"train": 12, "valid": 4}
