"""What must be set before anything is imported: where trackers keep their files."""

import atexit
import os
import shutil
import tempfile

# Trackio reads it once, when it is imported, and keeps all its projects there.
_trackio = tempfile.mkdtemp(prefix="hookloop-trackio-")
os.environ["TRACKIO_DIR"] = _trackio
atexit.register(shutil.rmtree, _trackio, ignore_errors=True)

# No test may reach for a server.
os.environ["WANDB_MODE"] = "offline"
os.environ.pop("MLFLOW_TRACKING_URI", None)
