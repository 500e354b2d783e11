"""Golden suites: `suite.toml`, cases, stratified sampling, and how a suite grows."""
