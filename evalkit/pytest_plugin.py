"""The pytest plugin: an eval is a test with a threshold."""
