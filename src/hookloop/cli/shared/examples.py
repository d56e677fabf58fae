"""One or two lines for each command, shown at the end of its help and on the page of commands."""

EXAMPLES = {
    "new": ("hookloop new my_project",),
    "check": ("hookloop check config.yaml", "hookloop check config.yaml --ranks 4"),
    "try": ("hookloop try config.yaml",),
    "model": ("hookloop model config.yaml --depth 2",),
    "find-lr": ("hookloop find-lr config.yaml --png curve.png",),
    "find-batch": ("hookloop find-batch config.yaml --most 512",),
    "train": (
        "hookloop train config.yaml optimizer.lr=0.01",
        "hookloop train config.yaml --ranks 4 run_dir=runs/one resume=auto",
    ),
    "resume": (
        "hookloop resume runs/one max_epochs=40",
        "hookloop resume runs/one optimizer.lr=1e-4 --change",
    ),
    "sweep": ('hookloop sweep config.yaml "optimizer.lr=log(1e-4,1e-2)" --trials 20',),
    "run": (
        "hookloop run --alias DIALECT train.py config.py",
        "hookloop run --graft DIALECT tools/train.py config.py",
    ),
    "validate": ("hookloop validate runs/one",),
    "test": ("hookloop test runs/one --checkpoint best",),
    "predict": ("hookloop predict runs/one inputs.csv --to scores.csv",),
    "export": ("hookloop export runs/one --format onnx --output model.onnx",),
    "publish": ("hookloop publish runs/one --to hf://user/model --private",),
    "join": ("hookloop join runs/one/iter_100 weights.safetensors",),
    "runs": (
        "hookloop runs --sort -val/accuracy",
        'hookloop runs --filter "optimizer.lr<0.01" --filter tag=baseline',
    ),
    "diff": ("hookloop diff runs/one runs/two",),
    "ask": ("hookloop ask runs/one save", "hookloop ask runs/one set optimizer.lr=1e-4"),
    "tag": ("hookloop tag runs/one baseline",),
    "note": ('hookloop note runs/one "the one in the paper"',),
    "rm": ("hookloop rm runs/one", "hookloop rm runs --failed --dead"),
    "replay": (
        "hookloop replay runs/one --iter 1234",
        "hookloop replay runs/one --iter 1200:1300 --hook RecordNorms",
    ),
    "fork": (
        "hookloop fork runs/one@1200 optimizer.lr=3e-4",
        "hookloop fork runs/one@1200 seed=1 --iters 300",
    ),
    "tree": ("hookloop tree", "hookloop tree runs --metric val/loss"),
    "verify-resume": ("hookloop verify-resume config.yaml --kills 5",),
    "kill-test": ("hookloop kill-test config.yaml --ranks 4 --mtbf 20s --kills 20",),
    "verify-hooks": ("hookloop verify-hooks config.yaml",),
    "reproduce": ("hookloop reproduce runs/one",),
    "config": ("hookloop config config.yaml --sources",),
    "plan": ("hookloop plan config.yaml",),
    "points": ("hookloop points",),
    "hooks": ("hookloop hooks", "hookloop hooks StopOnPlateau"),
    "schema": ("hookloop schema > hookloop.schema.json",),
    "completion": (
        "hookloop completion bash > ~/.local/share/bash-completion/completions/hookloop",
    ),
}
