"""Where a pass over data stands, and from what its order is drawn."""
