"""The board: a local web page over run directories. It reads `hookloop.runs`, and never torch."""
