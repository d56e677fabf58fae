"""A run on disk: where its files are and how they are read. Knows neither torch nor the engine."""
