"""The plot of docs/scale.md: time and memory against the number of cases.

    python tests/bench/plot_scale.py [cases]

With a number, one run of so many cases at 0 ms is measured and kept in docs/scale.json;
docs/scale.svg is drawn from that file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evalkit.report.charts import svg

DOCS = Path(__file__).resolve().parents[2] / "docs"
LATENCY_S, CONCURRENCY = 0.0, 128


def measure(cases: int) -> None:
    """One run, with what it used on its way."""
    from runner_jobs import in_a_process

    settings = {"cases": cases, "latency_s": LATENCY_S, "concurrency": CONCURRENCY}
    found = in_a_process("scale", settings)
    (DOCS / "scale.json").write_text(json.dumps({**settings, **found}) + "\n")


def draw() -> None:
    """Seconds and megabytes against finished cases, one above the other."""
    import altair as alt

    rows = json.loads((DOCS / "scale.json").read_text())["curve"]
    x = alt.X("cases:Q", title="cases finished")
    base = alt.Chart(alt.Data(values=rows)).properties(width=520, height=150)
    time = (
        base.transform_fold(["seconds", "CPU seconds"], as_=["which", "value"])
        .mark_line()
        .encode(
            x=x,
            y=alt.Y("value:Q", title="seconds"),
            color=alt.Color(
                "which:N",
                title=None,
                scale=alt.Scale(domain=["seconds", "CPU seconds"], range=["#9aa7b2", "#1f5a8a"]),
            ),
        )
    )
    memory = base.mark_line(color="#1f5a8a").encode(
        x=x, y=alt.Y("MB:Q", title="memory in use, MB", scale=alt.Scale(zero=True))
    )
    (DOCS / "scale.svg").write_text(svg(alt.vconcat(time, memory)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]))
    draw()
