"""What objects of a user hold, and how their values are brought into a checkpoint and back."""
