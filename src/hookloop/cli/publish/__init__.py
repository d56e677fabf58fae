"""Commands that use or hand on a trained model."""
