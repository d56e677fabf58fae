"""Saving a checkpoint: from the request to the durable file and its announcement."""
