"""The cases room."""
