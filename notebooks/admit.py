"""May this judge judge? Candidates and trivial judges against an anchor; writes the licence."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="evalkit · admit")

with app.setup(hide_code=True):
    import sys
    from functools import partial

    import marimo as mo

    from evalkit import params as flags

    if not mo.running_in_notebook():
        flags.begin_script(__name__)

    from evalkit.report import admission_charts as pictures
    from evalkit.report import admission_view as view
    from evalkit.report import cells, fragments
    from evalkit.report.cells import sentence
    from evalkit.report.progress import console_progress
    from evalkit.runs.admission_desk import AdmissionDesk
    from evalkit.runs.git import git_state

    html = partial(cells.html, style=view.STYLE)


@app.function(hide_code=True)
def framed(title, chart):
    """A picture under its title, no wider than it needs."""
    return mo.vstack([mo.md(title), chart]).style(width="340px")


@app.cell(hide_code=True)
def config():
    params = flags.parse(flags.AdmitParams, sys.argv[1:], interactive=mo.running_in_notebook())
    return (params,)


@app.cell(hide_code=True)
def opened(params):
    desk = AdmissionDesk(params.out, strict=not params.interactive)
    suites = desk.suites(params.suite)
    return desk, suites


@app.cell(hide_code=True)
def signals():
    get_round, set_round = mo.state(0)  # grows when a run starts or ends
    get_written, set_written = mo.state(())  # the licences that were written
    return get_round, get_written, set_round, set_written


@app.cell(hide_code=True)
def intro():
    mo.md("""
    # May this judge judge?

    A judge's verdict counts only after the judge has agreed with evidence from outside the system.
    Choose candidates and an anchor; the trivial judges are always scored beside them, for nothing.
    """)
    return


@app.cell(hide_code=True)
def choose_suite(suites):
    suite_choice = mo.ui.dropdown(suites, value=next(iter(suites)), label="suite", full_width=True)
    return (suite_choice,)


@app.cell(hide_code=True)
def open_suite(desk, suite_choice):
    suite = desk.open(suite_choice.value)
    mo.stop(suite is None, mo.vstack([suite_choice, sentence(desk.problem)]))
    return (suite,)


@app.cell(hide_code=True)
def choose_judges(desk, params, suite):
    _files = desk.judge_files(suite, params.judge)
    _asked = [name for name, _ in zip(_files, filter(None, params.judge.split(",")), strict=False)]
    judge_choice = mo.ui.multiselect(_files, value=_asked, label="candidates", full_width=True)
    return (judge_choice,)


@app.cell(hide_code=True)
def choose_model(params):
    model_choice = mo.ui.text(
        value=params.model, label="model", placeholder="the judge's own", full_width=True
    )
    return (model_choice,)


@app.cell(hide_code=True)
def candidates(desk, judge_choice, model_choice):
    judges = desk.judges(judge_choice.value, model_choice.value.strip()) or ()
    judges_problem = desk.problem
    return judges, judges_problem


@app.cell(hide_code=True)
def choose_anchor(desk, judges, params, suite):
    _files = desk.anchor_files(suite, params.anchors)
    _first = next(iter(_files)) if params.anchors else ""
    anchor_choice = mo.ui.dropdown(
        _files,
        value=_first or desk.fitting(_files, judges, params.criterion),
        label="anchor",
        full_width=True,
    )
    return (anchor_choice,)


@app.cell(hide_code=True)
def choose_rest(params):
    controls = mo.ui.dictionary(
        {
            "criterion": mo.ui.text(value=params.criterion, label="criterion", full_width=True),
            "sample": cells.number("items at most (0: all)", params.sample, 0),
            "seed": cells.number("seed", params.seed, 0),
        }
    )
    return (controls,)


@app.cell(hide_code=True)
def sidebar(anchor_choice, controls, judge_choice, model_choice, suite_choice):
    _all = [suite_choice, judge_choice, model_choice, anchor_choice, *controls.values()]
    mo.sidebar(mo.vstack(_all, gap=0.8), width="19rem")
    return


@app.cell(hide_code=True)
def planned(anchor_choice, controls, desk, judges, judges_problem, suite):
    mo.stop(not judges, sentence(judges_problem))
    plan = desk.plan(suite, judges, anchor_choice.value, **controls.value)
    mo.stop(plan is None, sentence(desk.problem))
    return (plan,)


@app.cell(hide_code=True)
def priced(desk, get_round, plan):
    get_round()
    price = desk.price(plan)
    mo.stop(price is None, sentence(desk.problem))
    return (price,)


@app.cell(hide_code=True)
def buttons(desk, params, plan, price, set_round):
    def _run(_):
        desk.start(plan, max_cost_usd=params.max_cost)
        set_round(lambda n: n + 1)

    actions = mo.ui.array(cells.run_and_stop(desk.job, price.label, _run))
    return (actions,)


@app.cell(hide_code=True)
def where(actions, plan, suite):
    _notes = [sentence(note, "info") for note in plan.notes]
    _line = html(view.head_html(plan, git_state(suite.folder).label))
    mo.vstack([_line, *_notes, actions.hstack(justify="start")])
    return


@app.cell(hide_code=True)
def clock(desk, get_round):
    get_round()
    ticking = cells.clock(desk.job)
    cells.hidden(ticking)
    return (ticking,)


@app.cell(hide_code=True)
def watch(desk, get_round, set_round, ticking):
    if get_round() and cells.ended(desk.job, ticking):
        set_round(lambda n: n + 1)  # price, results and the clock are drawn again
    cells.line(desk.job)
    return


@app.function(hide_code=True)
async def page_run(desk, plan, max_cost):
    """The run of a script: its progress goes to stderr."""
    with console_progress(len(plan.requests), "judging") as progress:
        return await desk.run(plan, progress, max_cost_usd=max_cost)


@app.cell(hide_code=True)
async def run_as_script(desk, params, plan):
    scripted = await page_run(desk, plan, params.max_cost) if params.auto else None
    return (scripted,)


@app.cell(hide_code=True)
def outcome(desk, get_round, params, scripted):
    get_round()
    result = scripted or desk.job.outcome
    mo.stop(result is None, mo.md("*Nothing scored yet. The green button says what it will cost.*"))
    mo.stop(bool(result.broken) and params.interactive, sentence(result.broken))
    found = result.found
    return found, result


@app.cell(hide_code=True)
def table(found):
    html(view.tables_html(found), view.checks_html(found))
    return


@app.cell(hide_code=True)
def choose_focus(found):
    _names = {f"{judge.name} · {judge.model}": n for n, judge in enumerate(found.judges)}
    focus = mo.ui.dropdown(_names, value=next(iter(_names)), label="look closer at")
    return (focus,)


@app.cell(hide_code=True)
def path(focus, found, result):
    judge = found.judges[focus.value]
    _picture = view.path_html(judge, found.path_of(judge))
    _choose = [focus] if len(found.judges) > 1 else []
    mo.vstack([*_choose, html(_picture, view.ruling_html(result, judge))])
    return (judge,)


@app.cell(hide_code=True)
def scores(found, judge, params):
    line = next(iter(found.of(judge)[0]), None)
    mo.stop(line is None or not params.interactive)
    _whose = pictures.whose(line)
    _curve = pictures.recalibration_curve(line)
    _parts = [
        framed(f"**Confusion** · {_whose} down, judge across", pictures.confusion_of(line)),
        framed(f"**Item by item** · {_whose} across, judge up", pictures.scatter(line)),
    ]
    if _curve is not None:
        _title = "**Recalibration** · thick: all, thin: without a fold"
        _parts.append(framed(_title, _curve))
    _words = html(fragments.note(pictures.recalibration_words(line)))
    mo.vstack([mo.hstack(_parts, justify="start", gap=1, wrap=True), _words])
    return (line,)


@app.cell(hide_code=True)
def strip(found, judge):
    _runs = found.of(judge)[1]
    mo.stop(not _runs)
    html("<h3>Known pairs</h3>", *(view.strip_html(run) for run in _runs))
    return


@app.cell(hide_code=True)
def licence_button(desk, result, set_written):
    def _write(_):
        set_written(desk.write_licences(result) or ())

    writing = mo.ui.button(label="Write licence", on_click=_write)
    return (writing,)


@app.cell(hide_code=True)
def licence_line(desk, get_written, writing):
    _what = "The file says what was found and what it permits, also when that is nothing."
    _done = [html(fragments.note(f"written: {path.as_posix()}")) for path in get_written()]
    _problem = [sentence(desk.problem)] if desk.problem else []
    mo.vstack([writing, html(fragments.note(_what)), *_done, *_problem])
    return


@app.cell(hide_code=True)
def licence_by_script(desk, params, result):
    licences = ()
    if params.auto and params.write_licence and not result.broken:
        licences = desk.write_licences(result) or ()
    return (licences,)


@app.cell(hide_code=True)
def report(desk, licences, params, result):
    if not params.interactive:
        if result.broken:
            print(f"broken: {result.broken}", file=sys.stderr)
            flags.tell(4)
            sys.exit(4)
        _cockpit = f"marimo run notebooks/admit.py -- --suite {params.suite} --judge {params.judge}"
        _ledger = (desk.bench.out / "eval_baseline.tsv").as_posix()
        print(view.admission_text(result, licences=licences, cockpit=_cockpit, ledger=_ledger))
        flags.tell(0)
    return


if __name__ == "__main__":
    app.run()
