"""May this go out? The CI job and its evidence page; the exit status is the verdict."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="evalkit · gate")

with app.setup(hide_code=True):
    import sys

    import marimo as mo

    from evalkit import params as flags
    from evalkit.report import gate as shown
    from evalkit.report.fragments import STYLE
    from evalkit.report.progress import console_progress
    from evalkit.runs.gate_session import GateOptions, GateSession

    if not mo.running_in_notebook():
        sys.excepthook = flags.script_excepthook


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
def session(params):
    gate = GateSession(GateOptions.of(params))
    return (gate,)


@app.cell(hide_code=True)
def start(gate, params):
    # A script acts at once; a person sees what the run takes and presses the button.
    button = mo.ui.run_button(label="Run" if params.auto else gate.price().label)
    button if params.interactive else None
    return (button,)


@app.cell(hide_code=True)
async def run(button, gate, params):
    mo.stop(not (params.auto or button.value), mo.md("*Not run yet.*"))
    if mo.app_meta().mode == "script":
        with console_progress(gate.total, "gate") as _progress:
            gated = await gate.run(_progress)
    else:
        gated = await gate.run()
    return (gated,)


@app.cell(hide_code=True)
def files(gate, gated, params):
    written = [str(path) for path in shown.write_gate(gated.result, gated.run.folder)]
    written += [str(path) for path in shown.write_page(gate, gated, params.page)]
    return (written,)


@app.cell(hide_code=True)
def promote(gate, gated, params):
    promotion = gate.promotion(gated, asked=params.freeze)
    return (promotion,)


@app.cell(hide_code=True)
def verdict(gated, promotion, written):
    _files = "\n".join([f"written: {', '.join(written)}", promotion.said]).strip()
    mo.vstack([mo.Html(STYLE + shown.gate_html(gated.result)), mo.plain_text(_files)])
    return


@app.cell(hide_code=True)
def end(gate, gated, promotion, written):
    gate.close()
    if mo.app_meta().mode == "script":
        print(shown.script_text(gated.result, written, promotion))
        sys.stdout.flush()
        sys.exit(shown.exit_status(gated.result, promotion))
    return


if __name__ == "__main__":
    app.run()
