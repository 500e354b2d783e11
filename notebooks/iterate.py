"""Is this prompt better? Edit it, price and run a stratified sample, read, compare, freeze."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="evalkit · iterate")

with app.setup(hide_code=True):
    import sys

    import marimo as mo

    from evalkit import params as flags

    if not mo.running_in_notebook():
        flags.begin_script(__name__)

    from evalkit.report import cells, charts, console, fragments, tables
    from evalkit.report.cells import html, sentence
    from evalkit.report.progress import console_progress
    from evalkit.runs.cockpit import Choices, Cockpit, chosen_case
    from evalkit.runs.comparison import compare_runs
    from evalkit.runs.run import list_runs, load_run


@app.function(hide_code=True)
def beside(left, right):
    """Two things side by side, neither wider than its half; below each other where it is narrow."""
    return html(
        f'<div class="ek-two"><div>{mo.as_html(left)}</div><div>{mo.as_html(right)}</div></div>'
    )


@app.cell(hide_code=True)
def config():
    params = flags.parse(flags.IterateParams, sys.argv[1:], interactive=mo.running_in_notebook())
    return (params,)


@app.cell(hide_code=True)
def cockpit(params):
    desk = Cockpit(params.out, baseline=params.baseline, strict=not params.interactive)
    suites = desk.suites(params.suite)
    return desk, suites


@app.cell(hide_code=True)
def signals():
    get_round, set_round = mo.state(0)  # grows when a run starts or ends
    get_saved, set_saved = mo.state(0)  # grows when a prompt or a baseline is written
    get_cases, set_cases = mo.state(0)  # grows when a case is added
    return get_cases, get_round, get_saved, set_cases, set_round, set_saved


@app.cell(hide_code=True)
def intro():
    mo.md("""
    # Is this prompt better?

    Edit the prompt, run a stratified sample, read which cases moved. Nothing is asked of a model
    before the green button is pressed; it says what it will cost.
    """)
    return


@app.cell(hide_code=True)
def top(baseline, desk, plan, suite):
    html(fragments.draft_line(plan, baseline and baseline.manifest, desk.commit(suite)))
    return


@app.cell(hide_code=True)
def choose_suite(suites):
    suite_choice = mo.ui.dropdown(suites, value=next(iter(suites)), label="suite", full_width=True)
    return (suite_choice,)


@app.cell(hide_code=True)
def open_suite(desk, suite_choice):
    # The choices below are made from it once: nothing that is written later resets them.
    opened = desk.open(suite_choice.value)
    mo.stop(opened is None, mo.vstack([suite_choice, sentence(desk.problem)]))
    return (opened,)


@app.cell(hide_code=True)
def suite_now(desk, get_cases, opened, suite_choice):
    suite = desk.open(suite_choice.value) if get_cases() else opened
    mo.stop(suite is None, sentence(desk.problem))
    return (suite,)


@app.cell(hide_code=True)
def choose_prompt(desk, opened, params):
    prompts = desk.prompts(opened, params.prompt)
    prompt_choice = mo.ui.dropdown(
        prompts, value=next(iter(prompts), None), label="prompt", full_width=True
    )
    return (prompt_choice,)


@app.cell(hide_code=True)
def choose_rest(opened, params):
    _most = max(len(opened.cases), params.sample)
    controls = mo.ui.dictionary(
        {
            "model": mo.ui.text(
                value=params.model or opened.task.model, label="model", full_width=True
            ),
            "sample": cells.number("sample", params.sample, 1, _most),
            "allocation": mo.ui.radio(
                ["proportional", "equal"], value=params.allocation, label="strata"
            ),
            "repeats": cells.number("repeats", params.repeats, 1, 50),
            "seed": cells.number("seed", params.seed, 0),
            "judges": mo.ui.checkbox(value=params.judges, label="judged criteria too"),
            "fresh": mo.ui.checkbox(value=params.fresh, label="draw new samples"),
        }
    )
    return (controls,)


@app.cell(hide_code=True)
def sidebar(controls, prompt_choice, suite_choice):
    mo.sidebar(mo.vstack([suite_choice, prompt_choice, *controls.values()], gap=0.8), width="19rem")
    return


@app.cell(hide_code=True)
def choices_of(controls, params):
    choices = Choices(
        **controls.value,
        max_cost_usd=params.max_cost,
        engine=params.engine,
        scheduler=params.scheduler,
    )
    return (choices,)


@app.cell(hide_code=True)
def write_prompt(desk, opened, prompt_choice):
    mo.stop(prompt_choice.value is None, sentence("This suite names no prompt."))
    editor = mo.ui.text_area(
        desk.text(opened, prompt_choice.value), rows=18, debounce=400, full_width=True
    )
    return (editor,)


@app.cell(hide_code=True)
def check_prompt(desk, editor, get_saved, prompt_choice, suite):
    get_saved()
    edited = desk.edit(suite, prompt_choice.value, editor.value)
    return (edited,)


@app.cell(hide_code=True)
def show_prompt(edited, editor):
    _change = [
        fragments.change_html(edited.saved, edited.text),
        fragments.shape_html(edited.broken, edited.rules),
    ]
    _right = [mo.md("**Change against the file**"), html(*_change)]
    _right += [sentence(edited.problem)] if edited.problem else []
    beside(mo.vstack([mo.md("**Prompt**"), editor]), mo.vstack(_right))
    return


@app.cell(hide_code=True)
def frozen(desk, get_saved, suite):
    get_saved()
    baseline = desk.baseline(suite)
    baseline_problem = desk.problem
    return baseline, baseline_problem


@app.cell(hide_code=True)
def planned(choices, desk, edited, suite):
    mo.stop(edited.prompt is None, sentence("Mend the prompt first: it cannot be run as it is."))
    plan = desk.plan(suite, edited, choices)
    mo.stop(plan is None, sentence(desk.problem))
    return (plan,)


@app.cell(hide_code=True)
def priced(baseline, choices, desk, get_round, plan):
    get_round()
    price = desk.price(plan, choices, baseline)
    mo.stop(price is None, sentence(desk.problem))
    return (price,)


@app.cell(hide_code=True)
def buttons(baseline, choices, desk, edited, plan, price, set_round, set_saved, suite):
    def _run(_):
        desk.start(plan, choices, baseline)
        set_round(lambda n: n + 1)

    def _save(_):
        desk.save(suite, edited)
        set_saved(lambda n: n + 1)

    _saving = mo.ui.button(label="Save prompt", on_click=_save, disabled=not edited.draft)
    actions = mo.ui.array([*cells.run_and_stop(desk.job, price.label, _run), _saving])
    return (actions,)


@app.cell(hide_code=True)
def where(actions, baseline_problem, plan):
    _notes = [sentence(w, "info") for w in plan.sample.warnings]
    _notes += [sentence(baseline_problem)] if baseline_problem else []
    mo.vstack([*_notes, actions.hstack(justify="start")])
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


@app.cell(hide_code=True)
async def run_as_script(baseline, choices, desk, params, plan):
    scripted = await page_run(desk, plan, choices, baseline) if params.auto else None
    return (scripted,)


@app.function(hide_code=True)
async def page_run(desk, plan, choices, baseline):
    """The run of a script: its progress goes to stderr."""
    with console_progress(len(plan)) as progress:
        return await desk.run(plan, choices, baseline, progress)


@app.cell(hide_code=True)
def past_runs(desk, get_round, suite):
    get_round()
    _known = list_runs(desk.bench.runs, suite.name)[:30]
    past = {f"{m.created} · {m.prompt.get('hash')}": m.run_id for m in _known}
    past_choice = mo.ui.dropdown(past, label="an earlier run")
    return (past_choice,)


@app.cell(hide_code=True)
def result(desk, get_round, past_choice, scripted):
    get_round()
    run = scripted or desk.job.outcome
    if past_choice.value:
        run = load_run(desk.bench.runs / past_choice.value)
    mo.stop(
        run is None,
        mo.vstack([mo.md("*No run yet. Press the green button above.*"), past_choice]),
    )
    summary = run.summary()
    return run, summary


@app.cell(hide_code=True)
def compared(baseline, run, suite):
    comparison = compare_runs(run, baseline, suite=suite) if baseline else None
    return (comparison,)


@app.cell(hide_code=True)
def verdict(comparison, past_choice, run, summary):
    _pins = fragments.pin_line(run.manifest, observations=summary.n_rows)
    mo.vstack([past_choice, html(_pins, fragments.verdict_html(summary, comparison))])
    return


@app.cell(hide_code=True)
def picture(baseline, params, summary):
    mo.stop(not params.interactive)
    _old = baseline.summary() if baseline else None
    _head = ["criterion", "rate (95 % interval)", "floor", "beside"]
    _legend = "● now with its 95 % interval · ┃ floor" + (" · ◇ baseline" if baseline else "")
    _table = fragments.table(_head, tables.criteria_rows(summary))
    _folded = html(fragments.folded("the same as a table", _table))
    mo.vstack([mo.md(f"**Criteria** · {_legend}"), charts.rates(summary, _old, width=430), _folded])
    return


@app.cell(hide_code=True)
def filters(params):
    mo.stop(not params.interactive)
    only = mo.ui.radio(["all", "failed", "changed"], value="all", inline=True)
    return (only,)


@app.cell(hide_code=True)
def cases_table(baseline, comparison, only, params, run):
    _changed = [c.case_id for c in comparison.cases] if comparison else []
    frame = tables.case_frame(run, baseline, first=_changed, only=only.value)
    case_choice = mo.ui.table(
        frame,
        selection="single",
        initial_selection=[*frame.index[frame["id"] == params.case]],
        page_size=12,
        wrapped_columns=["finding"],
        column_widths={"id": 120, "stratum": 100, "now": 70, "was": 70, "change": 90},
        show_column_summaries=False,
        show_data_types=False,
        show_download=False,  # a spreadsheet would run what looks like a formula
    )
    mo.vstack([mo.md("**Cases**, those that changed first"), only, case_choice])
    return (case_choice,)


@app.cell(hide_code=True)
def one_case(baseline, case_choice, plan, run, suite):
    mo.stop(len(case_choice.value) == 0, mo.md("*Select a case to read it.*"))
    case = chosen_case(suite, case_choice.value.iloc[0]["id"])
    _old = baseline.by_case().get(case.id, ()) if baseline else ()
    _prompt = fragments.rendered(plan, case)
    html(fragments.case_html(case, run.by_case()[case.id], _old, rendered=_prompt))
    return (case,)


@app.cell(hide_code=True)
def grow(case, desk, set_cases, suite):
    def _add(form):
        desk.add_to_golden(suite, case, form["why"])
        set_cases(lambda n: n + 1)

    grow_form = (
        mo.md("Add a case like this one to the golden set. Reason: {why}")
        .batch(why=mo.ui.text(placeholder="a failure found in ...", full_width=True))
        .form(submit_button_label="Add to golden set", on_change=_add)
    )
    grow_form
    return


@app.cell(hide_code=True)
def freeze_button(desk, params, run, set_saved, suite):
    def _freeze(_):
        desk.freeze(run, suite, allow_dirty=params.allow_dirty)
        set_saved(lambda n: n + 1)

    freezing = mo.ui.button(label="Freeze as baseline", on_click=_freeze)
    return (freezing,)


@app.cell(hide_code=True)
def freeze_line(desk, freezing, get_saved, suite):
    get_saved()
    _what = (
        "A frozen run is what later runs are compared with, case by case; the file goes under "
        f"version control at {desk.baseline_file(suite)}."
    )
    _problem = [sentence(desk.problem)] if desk.problem else []
    mo.vstack([freezing, html(fragments.note(_what)), *_problem])
    return


@app.cell(hide_code=True)
def freeze_by_script(desk, params, run, suite):
    frozen_to = None
    if params.auto and params.freeze:
        frozen_to = desk.freeze(run, suite, allow_dirty=params.allow_dirty)
    return (frozen_to,)


@app.cell(hide_code=True)
def page(baseline, params, run, suite):
    if params.auto and params.page:
        from evalkit.report.page import write_page

        write_page(params.page, run, suite=suite, baseline=baseline)
    page_written = params.page
    return (page_written,)


@app.cell(hide_code=True)
def report(comparison, frozen_to, page_written, params, run, summary):
    if not params.interactive:
        _cockpit = f"marimo edit notebooks/iterate.py -- --suite {params.suite}"
        print(console.run_text(run, summary, comparison, frozen=frozen_to, cockpit=_cockpit))
        print(f"page: {page_written}" if page_written else "", end="\n" if page_written else "")
        flags.tell(0)
    return


if __name__ == "__main__":
    app.run()
