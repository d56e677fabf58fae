"""Hooks that change, average, freeze or limit weights, buffers and gradients."""
