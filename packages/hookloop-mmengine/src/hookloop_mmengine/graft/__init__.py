"""The graft of MMEngine: the real package, with our engine under its runner.

    patches       what is replaced in the package
    training      a train loop, driven by our engine
    hooks         its hooks in a plan, and what keeps its counters
    evaluation    a validation, by its own loop
    checkpoints   saving, loading, resuming
    saving        which files are requested, and deleted
    iterator      the iterator of a loop by iterations
    plain         its values as those that our files hold
    without_gpus  several processes on CPUs

Nothing here is imported before `hookloop.dialects.graft` is called: it needs the package.
"""
