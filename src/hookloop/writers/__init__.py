"""Writers: each sends records to one backend. Knows nothing of hooks."""
