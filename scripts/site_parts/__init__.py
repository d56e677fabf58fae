"""The parts of scripts/make_site.py: collect the pages, arrange them, check what was built."""
