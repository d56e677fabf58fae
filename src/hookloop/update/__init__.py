"""One update: from a group of microbatches to stepped optimizers, assembled once before a training.

It knows the run and the mount points, and neither the loop that calls it nor the Trainer.
"""
