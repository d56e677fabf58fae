"""Run the scenarios on the real MMEngine and record the results for the everyday tests.

    python scripts/record_mmengine.py tests/fixtures/mmengine.json

It needs an environment with mmengine; `make downstream` makes one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCENARIOS = ROOT / "tests" / "downstream" / "mmengine_scenarios.py"
HOOKS = ROOT / "tests" / "downstream" / "mmengine_hooks.py"


def main() -> None:
    """Write the results of all scenarios, or of those named, to a file."""
    # MMEngine 0.10.7 calls torch.load without weights_only, which newer versions reject.
    os.environ.setdefault("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    time.sleep = lambda seconds: None  # MMEngine waits 2 s at each new pass.
    import mmengine

    scenarios = load(SCENARIOS)
    out = Path(sys.argv[1])
    names = sys.argv[2:] or list(scenarios.SCENARIOS)
    results = json.loads(out.read_text()) if out.is_file() else {}
    results["mmengine"] = mmengine.__version__
    for name in names:
        start = time.perf_counter()
        results[name] = scenarios.run(name)
        print(f"{name}: {time.perf_counter() - start:.1f} s")
    checkpoint = out.with_name("mmengine_epoch_2.pth")
    scenarios.keep_checkpoint(checkpoint)
    results["resumed"] = scenarios.run_resumed(checkpoint)
    write(out, results)
    write(out.with_name("mmengine_hooks.json"), load(HOOKS).run_all())


def load(path: Path) -> Any:  # noqa: ANN401 - a module with functions of its own
    """Load a file of the tests as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Workers of a loader look it up by its name.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def write(out: Path, results: dict[str, object]) -> None:
    """Write results, each in a line of its own."""
    lines = (f" {json.dumps(key)}: {json.dumps(results[key])}" for key in sorted(results))
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
