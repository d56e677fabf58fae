"""The project that the pages of the docs speak of, as small as it can be."""
