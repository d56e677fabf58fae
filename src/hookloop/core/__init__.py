"""The engine: mount points, hooks, plan, loop, trainer.

Read in this order: points (where hooks act), hook (what one is), plan (who is called), run (what a
hook sees), turn (forward, loss, backward, update), loop (the training itself), trainer (around it).
"""
