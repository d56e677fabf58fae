"""``lightning.fabric.utilities``."""
