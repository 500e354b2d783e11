"""When did it move, and why? The ledger over time, every step with its cause."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="evalkit · history")

with app.setup(hide_code=True):
    import sys
    from pathlib import Path

    import marimo as mo

    from evalkit import params as flags
    from evalkit.report import history as shown
    from evalkit.report.cells import html
    from evalkit.runs.history import series_of

    if not mo.running_in_notebook():
        sys.excepthook = flags.script_excepthook


@app.cell(hide_code=True)
def config():
    params = flags.parse(flags.HistoryParams, sys.argv[1:], interactive=mo.running_in_notebook())
    return (params,)


@app.cell(hide_code=True)
def intro():
    mo.md("""
    # When did it move, and why?

    One chart a metric; the band is its 95 % interval, the dashed line its floor. The word at a
    point says what changed since the one before: prompt, code, model, cases, judge, or nothing. A
    score that moved while nothing changed is *drift*: what stands behind a name is another thing.
    """)
    return


@app.cell(hide_code=True)
def read(params):
    series = series_of(Path(params.ledger), suite=params.suite, metric=params.metric)
    return (series,)


@app.cell(hide_code=True)
def charts(series):
    _empty = mo.callout(
        mo.md("The ledger holds nothing yet. A live run of `gate.py` fills it."), kind="info"
    )
    mo.hstack(
        [shown.history_chart(one) for one in series], wrap=True, justify="start"
    ) if series else _empty
    return


@app.cell(hide_code=True)
def steps(series):
    mo.stop(not series)
    table = mo.ui.table(
        shown.history_frame(series),
        selection="single",
        page_size=20,
        hidden_columns=["row"],
        show_data_types=False,
        show_column_summaries=False,
        show_download=False,  # a spreadsheet would run what looks like a formula
    )
    table
    return (table,)


@app.cell(hide_code=True)
def step(params, series, table):
    mo.stop(len(table.value) == 0, mo.md("*Choose a step to see its commits and prompt diff.*"))
    _one, _index = (int(part) for part in table.value.iloc[0]["row"].split("."))
    _prompts = Path(params.suite) / "prompts" if params.suite else None
    _found = shown.step_html(series[_one], _index, _prompts or shown.prompts_of(series[_one]))
    html(_found)
    return


@app.cell(hide_code=True)
def end(series):
    if mo.app_meta().mode == "script":
        print(shown.history_text(series))
    return


if __name__ == "__main__":
    app.run()
