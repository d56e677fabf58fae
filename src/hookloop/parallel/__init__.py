"""Everything that concerns several processes and devices."""
