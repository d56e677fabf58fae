"""From files and the command line to a tree of plain values."""
