"""Read files and the command line into a tree of plain values."""
