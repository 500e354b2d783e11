"""The scorers room."""
