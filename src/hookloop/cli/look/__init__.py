"""Commands that show runs and what there is, and note something about a run."""
