"""Hooks of emloop, VISSL with ClassyVision, iMIX and Pointrix in hookloop: four dialects.

They use nothing but the public names of hookloop.
"""
