"""What is read of data, and how a pass over it starts."""
