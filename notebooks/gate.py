"""May this go out? The CI job and its evidence page; the exit status is the verdict."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="evalkit · gate")

with app.setup(hide_code=True):
    import sys

    import marimo as mo

    from evalkit import params as flags

    if not mo.running_in_notebook():
        flags.begin_script(__name__)

    from evalkit.report import cells, charts
    from evalkit.report import gate as shown
    from evalkit.report.progress import console_progress
    from evalkit.runs.gate_desk import GateDesk
    from evalkit.runs.gate_session import GateOptions


@app.cell(hide_code=True)
def config():
    params = flags.parse(flags.GateParams, sys.argv[1:], interactive=mo.running_in_notebook())
    return (params,)


@app.cell(hide_code=True)
def intro(params):
    mo.md(
        """
        # May this go out?

        Every criterion that decides is ruled on; what cannot be told is said so. Only a button
        that names its price asks a model.
        """
    ) if params.interactive else None
    return


@app.cell(hide_code=True)
def open_gate(params):
    desk = GateDesk(GateOptions.of(params), strict=not params.interactive)
    gate = desk.session
    get_round, set_round = mo.state(0)  # grows when a run starts or ends
    return desk, gate, get_round, set_round


@app.cell(hide_code=True)
def priced(desk, get_round, params):
    get_round()
    price = None if params.auto else desk.price()
    cells.sentence(desk.problem) if desk.problem else None
    return (price,)


@app.cell(hide_code=True)
def buttons(desk, price, set_round):
    def _start(_):
        desk.start()
        set_round(lambda n: n + 1)

    _label = desk.label(price) if price else "Run"
    actions = mo.ui.array(cells.run_and_stop(desk.job, _label, _start))
    actions.hstack(justify="start") if price else None
    return (actions,)


@app.cell(hide_code=True)
def clock(desk, get_round):
    get_round()
    ticking = cells.clock(desk.job)
    cells.hidden(ticking)
    return (ticking,)


@app.cell(hide_code=True)
def watch(desk, get_round, set_round, ticking):
    if get_round() and cells.ended(desk.job, ticking):
        set_round(lambda n: n + 1)  # price, verdict and the clock are drawn again
    cells.line(desk.job)
    return


@app.function(hide_code=True)
async def run_in_script(gate):
    """The run of a script: its progress goes to stderr."""
    with console_progress(gate.total, "gate") as progress:
        return await gate.run(progress)


@app.cell(hide_code=True)
async def run_at_once(gate, params):
    at_once = await run_in_script(gate) if params.auto else None
    return (at_once,)


@app.cell(hide_code=True)
def result(at_once, desk, get_round):
    get_round()
    gated = at_once or desk.job.outcome
    mo.stop(gated is None, mo.md("*No verdict yet. The button says what a run takes.*"))
    return (gated,)


@app.cell(hide_code=True)
def files(gate, gated, params):
    written, unwritten = shown.write_files(gate, gated, params.page)
    return unwritten, written


@app.cell(hide_code=True)
def promote(gate, gated, params):
    promotion = gate.promotion(gated, asked=params.freeze)
    return (promotion,)


@app.cell(hide_code=True)
def verdict(gated, promotion, unwritten, written):
    _files = "\n".join([f"written: {', '.join(written)}", *unwritten, promotion.said]).strip()
    mo.vstack([cells.html(shown.gate_html(gated.result)), mo.plain_text(_files)])
    return


@app.cell(hide_code=True)
def picture(gate, gated, params):
    mo.stop(not params.interactive)
    _old = gate.baseline.summary() if gate.baseline else None
    _legend = "● now with its 95 % interval · ┃ floor" + (" · ◇ baseline" if _old else "")
    mo.vstack([mo.md(f"**Criteria** · {_legend}"), charts.rates(gated.run.summary(), _old)])
    return


@app.cell(hide_code=True)
def end(gate, gated, promotion, unwritten, written):
    if mo.app_meta().mode == "script":
        gate.close()
        said = shown.script_text(gated.result, written, promotion, unwritten)
        flags.end_script(said, shown.exit_status(gated.result, promotion, unwritten))
    return


if __name__ == "__main__":
    app.run()
