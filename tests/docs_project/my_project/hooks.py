from hookloop import Hook


class MyHook(Hook):
    def __init__(self, arg1: int = 1) -> None:
        self.arg1 = arg1

    def after_train_iter(self, run):
        run.metrics.put("arg1", self.arg1)


class Report(Hook):
    def __init__(self, url: str, header: dict[str, str]) -> None:
        self.url = url
        self.header = header

    def after_run(self, run):
        assert "secret" not in self.url
