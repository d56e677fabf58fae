"""Numbers of a run: kept where they were computed until somebody reads them."""
