"""The engine: mount points, hooks, plan, loop.

Read in this order: points (where hooks act), hook (what one is), plan (who is called, with acting,
verify and contract behind it), run (what a hook sees), turn and iteration (forward, loss, backward,
update), loop (the training), evaluation. The package ``trainer`` puts a run together around it.
"""
