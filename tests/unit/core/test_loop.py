import pytest
import torch
from tests.tiny import Record, assert_same_bits, make_data, make_model, make_trainer, record

from hookloop.core.hook import Hook
from hookloop.core.run import Run
from hookloop.errors import DataError, ModelError

ITER = (
    "before_train_iter before_forward after_forward after_loss after_backward before_update "
    "after_update after_train_iter"
).split()
VAL_ITER = "before_val_iter before_forward after_forward after_loss after_val_iter".split()
VAL = ["before_val", "before_val_epoch", *VAL_ITER, "after_val_epoch", "after_val"]


def points_of(**options: object) -> list[str]:
    hook = Record()
    make_trainer(hooks=[hook], **options).train()
    return hook.points


def test_points_of_a_run_by_epochs(tmp_path):
    epoch = [
        "before_epoch",
        "before_train_epoch",
        *ITER * 3,
        "after_train_epoch",
        *VAL,
        "after_epoch",
        "after_epoch_profile",
    ]
    assert points_of(max_epochs=2, val_data=make_data(4), run_dir=tmp_path) == [
        "before_run",
        "before_train",
        *epoch * 2,
        "after_train",
        "after_run",
    ]


def test_points_of_a_run_by_iterations(tmp_path):
    points = points_of(max_iters=4, val_every=2, val_data=make_data(4), run_dir=tmp_path)
    assert points == [
        "before_run",
        "before_train",
        "before_epoch",
        "before_train_epoch",
        *ITER * 2,
        *VAL,
        *ITER,
        "after_train_epoch",
        "after_epoch",
        "after_epoch_profile",
        "before_epoch",
        "before_train_epoch",
        *ITER,
        *VAL,
        "after_train",  # the second epoch was cut short: it has no end
        "after_run",
    ]


def test_points_of_a_validation_alone(tmp_path):
    hook = Record()
    trainer = make_trainer(hooks=[hook], val_data=make_data(4), run_dir=tmp_path)
    assert "loss" in trainer.validate()
    assert hook.points == ["before_run", *VAL, "after_run"]


def test_points_of_a_test(tmp_path):
    hook = Record()
    make_trainer(hooks=[hook], test_data=make_data(8), run_dir=tmp_path).test()
    iteration = "before_test_iter before_forward after_forward after_loss after_test_iter".split()
    assert hook.points == [
        "before_run",
        "before_test",
        "before_test_epoch",
        *iteration * 2,
        "after_test_epoch",
        "after_test",
        "after_run",
    ]


def test_microbatches_fire_their_points_and_share_one_update(tmp_path):
    points = points_of(accumulate=2, max_epochs=1, run_dir=tmp_path)
    assert points.count("after_backward") == 3
    assert points.count("after_train_iter") == 2  # three batches: one group of two, one of one


def test_counters_count_what_is_completed(tmp_path):
    hook, calls = record(
        ["before_train_iter", "after_update", "after_train_iter", "after_train_epoch", "after_val"],
        lambda run: (run.progress.iter, run.progress.epoch, run.progress.iter_in_epoch),
    )
    make_trainer(hooks=[hook], val_data=make_data(4), run_dir=tmp_path).train()
    assert calls[:3] == [
        ("before_train_iter", (0, 0, 0)),
        ("after_update", (0, 0, 0)),
        ("after_train_iter", (1, 0, 1)),
    ]
    assert calls[-2:] == [("after_train_epoch", (3, 1, 3)), ("after_val", (3, 1, 3))]


def test_phase_and_stream_are_told(tmp_path):
    hook, calls = record(["after_loss"], lambda run: (run.phase, run.stream))
    streams = {"clean": make_data(4), "noisy": make_data(4)}
    make_trainer(hooks=[hook], val_data=streams, run_dir=tmp_path).train()
    assert [note for _, note in calls] == [("train", "train")] * 3 + [
        ("val", "clean"),
        ("val", "noisy"),
    ]


def hand_written(epochs: int, accumulate: int, clip: float | None = None) -> torch.nn.Module:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(7)
    for _ in range(epochs):
        batches = list(make_data(14, shuffle=True))
        for start in range(0, len(batches), accumulate):
            group = batches[start : start + accumulate]
            optimizer.zero_grad()
            for inputs, targets in group:
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                (loss / len(group) if accumulate > 1 else loss).backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
    return model


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("clip", [None, 0.1])
def test_result_equals_the_hand_written_loop_bit_for_bit(accumulate, clip):
    model = make_model()
    make_trainer(
        model=model,
        train_data=make_data(14, shuffle=True),
        max_epochs=3,
        accumulate=accumulate,
        clip_norm=clip,
        seed=7,
    ).train()
    assert_same_bits(model, hand_written(3, accumulate, clip))


def test_hooks_may_replace_output_and_loss(tmp_path):
    class Halve(Hook):
        def after_forward(self, run: Run) -> None:
            run.output = run.output * 0  # type: ignore[operator]

        def after_loss(self, run: Run) -> None:
            assert run.loss is not None
            run.loss = run.loss * 2

    trainer = make_trainer(hooks=[Halve()], max_iters=1, run_dir=tmp_path)
    trainer.train()
    targets = next(iter(make_data()))[1]
    assert trainer.run.metrics.latest("train/loss") == pytest.approx(2 * (targets**2).mean().item())


def test_a_model_that_returns_its_loss_needs_no_loss_function():
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            loss = ((self.layer(x) - y) ** 2).mean()
            return {"loss": loss, "twice": 2 * loss}

    trainer = make_trainer(model=Own(), loss=None)
    trainer.train()
    store = trainer.run.metrics
    assert store.latest("train/twice") == pytest.approx(2 * store.latest("train/loss"))


def test_named_steps_update_their_own_optimizer_in_turn():
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": torch.nn.Linear(4, 1)})
    optimizers = {name: torch.optim.SGD(part.parameters(), lr=0.1) for name, part in model.items()}
    order = []

    def step_of(name):
        def step(run, batch):
            order.append(name)
            if name == "b" and run.progress.iter == 1:
                return None
            return ((model[name](batch[0]) - batch[1]) ** 2).mean()

        return step

    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainer = make_trainer(
        model=model, optimizer=optimizers, step={n: step_of(n) for n in optimizers}, max_iters=2
    )
    trainer.train()
    assert order == ["a", "b", "a", "b"]
    assert all(not torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert {"train/a_loss", "train/b_loss"} <= set(trainer.run.metrics.names())
    assert len(trainer.run.metrics.series("train/b_loss").recent) == 1  # None skipped an update


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_lower_precision_trains(precision):
    trainer = make_trainer(precision=precision, max_epochs=30)
    trainer.train()
    losses = trainer.run.metrics.series("train/loss").recent
    assert float(losses[-1]) < float(losses[0]) / 2


def validated_at(**options: object) -> list[int]:
    hook, calls = record(["before_val"], lambda run: run.progress.iter)
    make_trainer(hooks=[hook], val_data=make_data(4), **options).train()
    return [note for _, note in calls]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_epochs": 4}, [3, 6, 9, 12]),
        ({"max_epochs": 4, "val_every": "3 epochs"}, [9, 12]),
        ({"max_epochs": 4, "val_every": "2 epochs", "val_begin": 3}, [12]),
        ({"max_epochs": 2, "val_begin": 5}, []),
        ({"max_epochs": 2, "val_at_start": True}, [0, 3, 6]),
        ({"max_epochs": 2, "val_every": 2}, [2, 4, 6]),
        ({"max_iters": 7, "val_every": 2, "val_begin": 4}, [4, 6, 7]),
        ({"max_iters": 2}, [2]),
    ],
)
def test_validation_times(options, expected, tmp_path):
    assert validated_at(run_dir=tmp_path, **options) == expected


def test_validation_on_request_comes_after_the_iteration(tmp_path):
    class Ask(Hook):
        def after_update(self, run: Run) -> None:
            if run.progress.iter == 1:
                run.validate()

    seen, calls = record(["before_val", "after_train_iter"], lambda run: run.progress.iter)
    make_trainer(hooks=[Ask(), seen], val_data=make_data(4), max_iters=3, run_dir=tmp_path).train()
    assert calls[:3] == [("after_train_iter", 1), ("after_train_iter", 2), ("before_val", 2)]


def test_epochs_of_a_fixed_size_read_on_across_their_borders(tmp_path):
    hook, calls = record(["after_train_iter"], lambda run: float(run.batch[0].sum()))
    make_trainer(hooks=[hook], epoch_iters=2, max_epochs=3, run_dir=tmp_path).train()
    sums = [float(batch[0].sum()) for batch in make_data()]
    assert [note for _, note in calls] == sums * 2


def test_data_without_a_length_trains(tmp_path):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([(torch.ones(4), torch.ones(1))] * 10)

    loader = torch.utils.data.DataLoader(Stream(), batch_size=4)
    trainer = make_trainer(train_data=loader, max_epochs=2)
    assert trainer.run.progress.total_iters is None
    trainer.train()
    assert (trainer.run.progress.iter, trainer.run.progress.total_iters) == (6, 6)


def test_a_generator_ends_the_training_when_it_ends():
    trainer = make_trainer(train_data=(batch for batch in make_data()), max_iters=10)
    outcome = trainer.train()
    assert (outcome.status, outcome.reason) == ("stopped", "train_data ended after 3 iterations")


def test_validation_means_weigh_samples_not_batches():
    trainer = make_trainer(
        val_data=make_data(6, batch_size=4), metrics={"count": lambda out, _: float(len(out))}
    )
    assert trainer.validate()["count"] == pytest.approx((4 * 4 + 2 * 2) / 6)


def test_torchmetrics_are_computed_over_all_batches_once():
    from torchmetrics import MeanSquaredError, MetricCollection
    from torchmetrics.regression import MeanAbsoluteError

    metrics = {"mse": MeanSquaredError(), "all": MetricCollection([MeanAbsoluteError()])}
    trainer = make_trainer(val_data=make_data(10), metrics=metrics)
    results = trainer.validate()
    model = trainer.run.model
    inputs = torch.cat([batch[0] for batch in make_data(10)])
    targets = torch.cat([batch[1] for batch in make_data(10)])
    with torch.no_grad():
        error = model(inputs) - targets
    assert results["mse"] == pytest.approx((error**2).mean().item())
    assert results["all/MeanAbsoluteError"] == pytest.approx(error.abs().mean().item())
    assert results["loss"] == pytest.approx(results["mse"])


def test_several_streams_have_their_own_metrics():
    streams = {"a": make_data(4), "b": make_data(8)}
    results = make_trainer(val_data=streams).validate()
    assert set(results) == {"val/a/loss", "val/b/loss"}


def test_test_data_without_targets_needs_no_loss(tmp_path):
    hook, calls = record(["after_test_iter"], lambda run: tuple(run.output.shape))
    make_trainer(hooks=[hook], test_data=[torch.ones(5, 4)], run_dir=tmp_path).test()
    assert calls == [("after_test_iter", (5, 1))]


def test_model_is_in_the_right_mode(tmp_path):
    hook, calls = record(
        ["before_train_iter", "before_val_iter", "after_epoch"], lambda run: run.model.training
    )
    make_trainer(hooks=[hook], val_data=make_data(4), max_epochs=2, run_dir=tmp_path).train()
    assert all(note == (point != "before_val_iter") for point, note in calls)


def test_evaluation_builds_no_graph(tmp_path):
    hook, calls = record(["after_val_iter"], lambda run: run.loss.requires_grad)
    make_trainer(hooks=[hook], val_data=make_data(4), run_dir=tmp_path).validate()
    assert calls == [("after_val_iter", False)]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda out, y: (out - y) ** 2, "shape (4, 1)"),
        (lambda out, y: 0.5, "float"),
        (lambda out, y: out.detach().mean(), "no trainable parameter"),
    ],
)
def test_a_loss_that_cannot_be_trained_on_is_refused_at_the_first_iteration(loss, message):
    trainer = make_trainer(loss=loss)
    with pytest.raises(ModelError) as error:
        trainer.train()
    assert message in str(error.value)
    assert trainer.run.progress.iter == 0


def test_batches_that_do_not_fit_the_loss_are_refused():
    with pytest.raises(DataError, match=r"train_data gives \[float32\[2, 4\], "):
        make_trainer(train_data=[[torch.ones(2, 4)] * 3]).train()


def test_an_iterable_that_gives_nothing_is_refused():
    class Nothing:
        def __iter__(self):
            return iter(())

    with pytest.raises(DataError, match="train_data is empty"):
        make_trainer(train_data=Nothing()).train()


def test_a_stop_before_the_first_batch_of_an_epoch_trains_nothing():
    hook, _ = record(["before_train_epoch"], lambda run: run.stop("enough"))
    trainer = make_trainer(hooks=[hook])
    outcome = trainer.train()
    assert (outcome.status, outcome.reason) == ("stopped", "enough")
    assert trainer.run.progress.iter == 0
