"""What each of many ranks reads of the data, and what that part counts for."""
