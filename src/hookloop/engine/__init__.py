"""The engine: mount points, hooks, plan, loop.

Read in this order: points (where hooks act), hook (what a hook is), plan (which calls a point
makes), checks (what is rejected before training), progress and run (what a hook sees), update
(forward, loss, backward, step), loop (the training), evaluation. The package ``trainer`` builds a
run from these parts.
"""
