"""The composition root: builds a run from what the user brings, and lives through it.

Read in this order: trainer (the public class and its arguments), inputs (checks and normal forms),
default_hooks and adapters (which hooks take part), session (the life of a run), start (where it
begins), state and checkpoints (what is saved, and how).
"""
