"""The validity room."""
