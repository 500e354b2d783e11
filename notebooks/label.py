"""What do people say? Blind labelling, one item at a time, by keyboard; each key is kept."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="evalkit · label")

with app.setup(hide_code=True):
    import sys
    from functools import partial

    import marimo as mo

    from evalkit import params as flags
    from evalkit.cases.growth import composition
    from evalkit.cases.suite import load_suite
    from evalkit.report import cells
    from evalkit.report import label_view as view
    from evalkit.report.cells import sentence
    from evalkit.runs.label_desk import LabelDesk
    from evalkit.runs.label_task import LabelChoices

    if not mo.running_in_notebook():
        sys.excepthook = flags.script_excepthook

    html = partial(cells.html, style=view.STYLE)


@app.cell(hide_code=True)
def config():
    params = flags.parse(flags.LabelParams, sys.argv[1:], interactive=mo.running_in_notebook())
    return (params,)


@app.cell(hide_code=True)
def signals():
    get_turn, set_turn = mo.state(0)  # grows with every key
    return get_turn, set_turn


@app.cell(hide_code=True)
def open_suite(params):
    desk = LabelDesk(params.out, strict=not params.interactive)
    suite = desk.open(params.suite)
    mo.stop(suite is None, sentence(desk.problem))
    return desk, suite


@app.cell(hide_code=True)
def sign_in(params):
    known = str(mo.query_params().get("annotator", params.annotator))
    name_form = (
        mo.md("**Who labels?** {name}")
        .batch(name=mo.ui.text(placeholder="your name", max_length=60))
        .form(submit_button_label="Begin")
    )
    return known, name_form


@app.cell(hide_code=True)
def signed_in(known, name_form):
    annotator = known or ((name_form.value or {}).get("name") or "").strip()
    return (annotator,)


@app.cell(hide_code=True)
def ask_name(annotator, name_form, params):
    mo.stop(not params.interactive or annotator)
    _why = "Labels carry your name and the time. Keys are enough: 1, 2, 3, ? cannot tell, s, u."
    mo.vstack([name_form, html(view.said_html(_why))])
    return


@app.cell(hide_code=True)
def choices_of(annotator, params):
    mo.stop(params.interactive and not annotator)
    if params.interactive:
        mo.query_params()["annotator"] = annotator  # a reload goes on under the same name
    choices = LabelChoices(
        annotator=annotator,
        kind=params.kind,
        criterion=params.criterion,
        draw=params.plan,
        sample=params.sample,
        seed=params.seed,
        levels=params.levels,
        source=params.source,
        against=params.against,
    )
    return (choices,)


@app.cell(hide_code=True)
def open_task(choices, desk, suite):
    task = desk.task(suite, choices)
    mo.stop(task is None, sentence(desk.problem))
    return (task,)


@app.cell(hide_code=True)
def where(params, task):
    html(view.head_html(task)) if params.interactive else None
    return


@app.cell(hide_code=True)
def begin(desk, params, task):
    mo.stop(not params.interactive)
    session = desk.session(task)
    mo.stop(session is None, sentence(desk.problem))
    return (session,)


@app.cell(hide_code=True)
def next_item(desk, get_turn, session, task):
    get_turn()
    shown = session.show()
    progress = desk.progress(task)
    return progress, shown


@app.cell(hide_code=True)
def keys(desk, progress, session, set_turn, shown, task):
    mo.stop(shown is None)

    def _does(word):
        def _press(_):
            desk.press(task, session, shown, word)
            set_turn(lambda n: n + 1)

        return _press

    pressed = mo.ui.array(
        [
            mo.ui.button(label=f"{text} ({key})", on_click=_does(word), keyboard_shortcut=key)
            for key, (text, word) in view.keys_of(shown).items()
        ]
    )
    _said = view.said_html(desk.said or "press a key, or a button")
    _row = pressed.hstack(justify="center", gap=0.8)
    _item = html(view.item_html(task, shown))  # with its keys, so that none is another item's
    mo.vstack([html(view.progress_html(shown, progress)), _row, html(_said), _item])
    return (pressed,)


@app.cell(hide_code=True)
def grow_form(desk, session, set_turn, shown, task):
    mo.stop(shown is None)

    def _add(form):
        desk.add_shown(task, session, form["why"])
        set_turn(lambda n: n + 1)

    growing = (
        mo.md("Reason: {why}")
        .batch(why=mo.ui.text(placeholder="a question nobody had thought of", full_width=True))
        .form(submit_button_label="Add to golden set", on_change=_add)
    )
    return (growing,)


@app.cell(hide_code=True)
def grow(growing, task):
    _now = load_suite(task.suite.folder)
    _mix = html(view.composition_html(composition(_now.cases, _now.sampling.mix)))
    mo.accordion({"Add this case to the golden set": mo.vstack([growing, _mix])})
    return


@app.cell(hide_code=True)
def end(desk, get_turn, shown, task):
    get_turn()
    mo.stop(shown is not None)
    _state = desk.state(task)
    html(view.state_html(_state), view.disputes_html(_state))
    return


@app.cell(hide_code=True)
def end_buttons(desk, session, set_turn, shown, task):
    mo.stop(shown is not None)

    def _export(_):
        _path = desk.export(task)
        desk.said = f"written: {_path.as_posix()}" if _path else desk.problem
        set_turn(lambda n: n + 1)

    def _undo(_):
        desk.undo(session)
        set_turn(lambda n: n + 1)

    last = mo.ui.array(
        [
            mo.ui.button(label="Export as an anchor", on_click=_export, kind="success"),
            mo.ui.button(label="undo (u)", on_click=_undo, keyboard_shortcut="u"),
        ]
    )
    _what = "An anchor with provenance human is what a judge is admitted on: admit.py."
    _said = html(view.said_html(_what), view.said_html(desk.said))
    mo.vstack([last.hstack(justify="center", gap=0.8), _said])
    return (last,)


@app.cell(hide_code=True)
def report(desk, params, task):
    if not params.interactive:
        _flags = f"--suite {params.suite} --kind {params.kind} --annotator NAME"
        _cockpit = f"marimo run notebooks/label.py -- {_flags}"
        print(view.label_text(task, desk.state(task), cockpit=_cockpit))
    return


if __name__ == "__main__":
    app.run()
