"""Short runs beside a training: try it, search a rate or a batch size, prove a resume, repeat it.

They build a Trainer from its arguments, or borrow one, and leave nothing behind. They know neither
config files nor the command line.
"""
