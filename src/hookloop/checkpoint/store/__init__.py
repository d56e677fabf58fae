"""Where checkpoints are kept: files written whole, listed with checksums, read with care."""
