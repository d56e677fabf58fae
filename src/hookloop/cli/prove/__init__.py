"""Commands that prove something: an exact resume, hooks that leave no trace, a run made again."""
