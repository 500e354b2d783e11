"""The judges room."""
