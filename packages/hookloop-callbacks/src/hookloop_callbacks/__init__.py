"""Callbacks of Lightning and Transformers in hookloop: two dialects, found by entry point.

Only public names of hookloop are used: ``hookloop``, ``hookloop.hooks``, ``hookloop.writers`` and
``hookloop.dialects``.
"""
