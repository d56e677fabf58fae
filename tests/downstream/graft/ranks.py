"""A training on the processes of a launcher, with the real MMEngine or on the graft."""

import sys

from hookloop import dialects
from hookloop.dialects.grafts import Graft

which, work_dir, kill_at = sys.argv[1:4]
if which == "grafted":
    dialects.graft("mmengine")
else:  # MMEngine alone starts processes on GPUs only.
    from hookloop_mmengine.graft.without_gpus import allow_processes

    allow_processes(Graft())

import toy  # noqa: E402 - beside this script

runner = toy.make_runner(
    work_dir,
    toy.Record(kill_at=int(kill_at) if kill_at else None),
    launcher="pytorch",
    env_cfg={"dist_cfg": {"backend": "gloo"}},
    resume=which == "grafted",
)
runner.train()
weights = toy.weights_of(runner)
total = {
    name.removeprefix("module."): value.double().sum().item() for name, value in weights.items()
}
sys.stdout.write(f"rank {runner.rank} {sorted(total.items())!r}\n")
sys.stdout.flush()
