"""Commands that search: a rate, a batch size, settings."""
