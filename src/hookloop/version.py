"""The version, in a place that anything may import."""

VERSION = "0.3.0"
