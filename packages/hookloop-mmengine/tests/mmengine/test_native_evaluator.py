import pytest
from tests.tiny import accuracy, make_classifier, make_data, make_trainer

from hookloop_mmengine.hooks import Hook


class Evaluators(Hook):
    def before_train(self, runner):
        self.val, self.test = runner.val_evaluator, runner.test_evaluator
        assert runner.val_loop.evaluator is self.val
        self.names = [metric.name for metric in self.val.metrics]

    def after_train(self, runner):
        for batch in runner.val_dataloader:
            self.val.process(data_samples=runner.model(batch[0]), data_batch=batch)
        self.result = self.val.evaluate(12)


def test_hooks_find_the_metrics_of_a_native_run():
    hook = Evaluators()
    trainer = make_classifier(hooks=[hook], metrics={"accuracy": accuracy}, run_dir="run")
    trainer.train()
    assert hook.names == ["accuracy"]
    result = trainer.run.metrics.latest("val/accuracy")
    assert float(hook.result["accuracy"]) == pytest.approx(result)


def test_the_data_sets_description_is_passed_on():
    data = make_data()
    data.dataset.metainfo = {"classes": ("a", "b")}
    hook = Evaluators()
    make_trainer(hooks=[hook], val_data=data, data={"test": make_data()}, run_dir="run").train()
    assert hook.val.dataset_meta == {"classes": ("a", "b")}
    assert hook.test.dataset_meta is None
