"""The generated pages of docs/, one module each; scripts/make_docs.py writes them."""
