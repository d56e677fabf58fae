"""Everything that touches several processes and devices."""
