"""A checkpoint that is a directory: each rank writes its part of the model."""
