"""Which draft is better, and would I agree? Two runs, prompts or folders of drafts side by side."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="evalkit · compare")

with app.setup(hide_code=True):
    import sys
    from functools import partial

    import marimo as mo

    from evalkit import params as flags

    if not mo.running_in_notebook():
        flags.begin_script(__name__)

    from evalkit.report import cells, duel_charts, duel_html, duel_text, fragments
    from evalkit.report.cells import sentence
    from evalkit.report.progress import console_progress
    from evalkit.runs.duel_desk import FILTERS, DuelChoices, DuelDesk, exit_status, filtered
    from evalkit.runs.duel_labels import VIEWS, People
    from evalkit.runs.duel_standing import judges_together, standings

    html = partial(cells.html, style=duel_html.STYLE)


@app.cell(hide_code=True)
def config():
    params = flags.parse(flags.CompareParams, sys.argv[1:], interactive=mo.running_in_notebook())
    return (params,)


@app.cell(hide_code=True)
def open_desk(params):
    desk = DuelDesk(params.out, strict=not params.interactive)
    suites = desk.suites(params.suite)
    return desk, suites


@app.cell(hide_code=True)
def signals():
    get_round, set_round = mo.state(0)  # grows when a comparison starts or ends
    get_votes, set_votes = mo.state(0)  # grows with each verdict of a person
    get_place, set_place = mo.state(0)  # which of the filtered pairs lies on the desk
    get_only, set_only = mo.state("all")  # which pairs are shown
    get_view, set_view = mo.state("")  # what is shown of them; "" until somebody chooses
    return (
        get_only,
        get_place,
        get_round,
        get_view,
        get_votes,
        set_only,
        set_place,
        set_round,
        set_view,
        set_votes,
    )


@app.cell(hide_code=True)
def intro():
    mo.md("""
    # Which draft is better, and would I agree?

    A judge compares two sides case by case in both orders; you read the pairs and say, without
    knowing which side is which, whether you agree. Nothing is asked of a model before the green
    button is pressed; it says what it will cost.
    """)
    return


@app.cell(hide_code=True)
def top(plan):
    html(duel_html.plan_line(plan)) if plan else mo.md("*Choose two sides in the sidebar.*")
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
def choose_sides(desk, params, suite):
    _sides = {
        letter: desk.sides(suite, given) for letter, given in (("A", params.a), ("B", params.b))
    }
    _first = {
        "A": params.a or next(iter(_sides["A"]), None),
        "B": params.b or next(iter([*_sides["B"]][1:]), None),  # not the prompt that A stands for
    }
    side_choice = mo.ui.dictionary(
        {
            letter: mo.ui.dropdown(
                options,
                value=_first[letter],
                label=letter,
                full_width=True,
            )
            for letter, options in _sides.items()
        }
    )
    return (side_choice,)


@app.cell(hide_code=True)
def choose_rest(desk, params, suite):
    _judges = desk.judges(suite, params.judge)
    _most = max(len(suite.cases), params.sample)
    controls = mo.ui.dictionary(
        {
            "judge": mo.ui.dropdown(
                _judges, value=next(iter(_judges), None), label="judge", full_width=True
            ),
            "model": mo.ui.text(
                params.model,
                placeholder="the judge's own",
                label="model of the judge",
                full_width=True,
            ),
            "sample": cells.number("sample", params.sample, 1, _most),
            "repeats": cells.number("repeats", params.repeats, 1, 50),
            "seed": cells.number("seed", params.seed, 0),
            "one_order": mo.ui.checkbox(params.one_order, label="one order only (exploratory)"),
        }
    )
    return (controls,)


@app.cell(hide_code=True)
def choose_person(params):
    person = mo.ui.text(
        params.annotator,
        placeholder="reads blind with a name",
        label="your name, for verdicts",
        full_width=True,
    )
    return (person,)


@app.cell(hide_code=True)
def sidebar(controls, person, side_choice, suite_choice):
    mo.sidebar(
        mo.vstack([suite_choice, *side_choice.values(), *controls.values(), person], gap=0.8),
        width="20rem",
    )
    return


@app.cell(hide_code=True)
def planned(controls, desk, params, side_choice, suite):
    choices = DuelChoices(
        a=side_choice["A"].value if params.interactive else params.a,
        b=side_choice["B"].value if params.interactive else params.b,
        max_cost_usd=params.max_cost,
        **controls.value,
    )
    plan = desk.plan(suite, choices)
    plan_problem = desk.problem
    return choices, plan, plan_problem


@app.cell(hide_code=True)
def priced(desk, get_round, plan):
    get_round()
    price = desk.price(plan) if plan else None
    price_problem = desk.problem if plan else ""
    return price, price_problem


@app.cell(hide_code=True)
def buttons(choices, desk, plan, price, set_round):
    def _run(_):
        desk.start(plan, choices)
        set_round(lambda n: n + 1)

    _label = price.label if price else "Compare"
    actions = mo.ui.array(cells.run_and_stop(desk.job, _label, _run, ready=price is not None))
    return (actions,)


@app.cell(hide_code=True)
def where(actions, plan, plan_problem, price_problem):
    _notes = [sentence(note, "info") for note in plan.notes] if plan else []
    _problems = [sentence(text) for text in (plan_problem, price_problem) if text]
    mo.vstack([*_notes, *_problems, actions.hstack(justify="start")])
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
async def run_as_script(choices, desk, params, plan):
    scripted = await page_run(desk, plan, choices) if params.auto else None
    return (scripted,)


@app.function(hide_code=True)
async def page_run(desk, plan, choices):
    """The comparison of a script: its progress goes to stderr."""
    with console_progress(0, "comparing") as progress:
        return await desk.run(plan, choices, progress)


@app.cell(hide_code=True)
def result(desk, get_round, scripted):
    get_round()
    duel = scripted or desk.job.outcome
    _empty = "Comparing …" if desk.job.running else "Nothing compared yet. Press the green button."
    mo.plain_text(_empty) if duel is None else None
    return (duel,)


@app.cell(hide_code=True)
def counted(desk, duel, get_votes):
    get_votes()
    people = desk.people(duel) if duel else People()
    found = standings(duel, people) if duel else ()
    together = judges_together(duel, found) if duel else None
    return found, people, together


@app.cell(hide_code=True)
def written(desk, duel, found, people):
    rows_file = desk.write(duel, found, people) if duel else None
    return (rows_file,)


@app.cell(hide_code=True)
def verdict(duel, found, params, plan, together, view):
    mo.stop(not found or not params.interactive)
    _old = [] if plan and plan.asks_what(duel.plan) else [duel_html.plan_line(duel.plan)]
    _note = [sentence("What follows is the comparison made last:", "info")] if _old else []
    _words = duel_html.verdict_html(duel, found, together, blind=view == "blind")
    mo.vstack([*_note, html(*_old, _words)])
    return


@app.cell(hide_code=True)
def charted(duel, found, params, view):
    mo.stop(not found or not params.interactive)
    _blind = view == "blind"
    _note = [mo.md("*Charts by case wait while you read blind.*")] if _blind else []
    mo.vstack([duel_charts.picture(duel, found[0], blind=_blind), *_note])
    return


@app.cell(hide_code=True)
def all_judges(duel, found, params):
    mo.stop(not found or not params.interactive)
    mo.vstack(
        [mo.md("**Judges**, the trivial ones beside"), html(duel_html.judges_html(duel, found))]
    )
    return


@app.function(hide_code=True)
def chips(names, chosen, choose):
    """One button a choice; a focused radio would swallow the arrow keys that turn the pages."""
    return mo.ui.array(
        [
            mo.ui.button(
                label=f"✓ {name}" if name == chosen else name,
                disabled=name == chosen,  # it lets go of the focus, so that the keys work again
                on_click=lambda _, name=name: choose(name),
            )
            for name in names
        ]
    )


@app.cell(hide_code=True)
def reading(get_only, get_view, person):
    only = get_only()
    view = get_view() or ("blind" if person.value.strip() else "open")
    return only, view


@app.cell(hide_code=True)
def choose_reading(only, set_only, set_place, set_view, view):
    def _filter(name):
        set_only(name)
        set_place(0)

    only_chips = chips(FILTERS, only, _filter)
    view_chips = chips(VIEWS, view, set_view)
    return only_chips, view_chips


@app.cell(hide_code=True)
def shelf(duel, found, only):
    pairs = filtered(found[0], only, duel.keys) if found else []
    return (pairs,)


@app.cell(hide_code=True)
def place(get_place, pairs):
    at = max(0, min(get_place(), len(pairs) - 1))
    return (at,)


@app.cell(hide_code=True)
def pager(at, pairs, set_place):
    turn = mo.ui.array(
        [
            mo.ui.button(
                label="← previous",
                on_click=lambda _: set_place(at - 1),
                keyboard_shortcut="ArrowLeft",
                disabled=at < 1,
            ),
            mo.ui.button(
                label="next →",
                on_click=lambda _: set_place(at + 1),
                keyboard_shortcut="ArrowRight",
                disabled=at + 1 >= len(pairs),
            ),
        ]
    )
    return (turn,)


@app.cell(hide_code=True)
def choose_pair(found, only_chips, params, turn, view_chips):
    mo.stop(not found or not params.interactive)
    mo.vstack(
        [
            mo.hstack([mo.md("**Pairs**"), *only_chips], justify="start", wrap=True, gap=0.4),
            mo.hstack([mo.md("**View**"), *view_chips], justify="start", wrap=True, gap=0.4),
            turn.hstack(justify="start"),
        ]
    )
    return


@app.cell(hide_code=True)
def on_the_desk(at, desk, duel, pairs, person, suite):
    key = pairs[at] if pairs else None
    ballot = desk.ballot(duel.plan.suite if duel else suite, person.value)
    return ballot, key


@app.cell(hide_code=True)
def one_pair(at, ballot, duel, found, get_votes, key, only, pairs, params, people, view):
    get_votes()
    mo.stop(not found or not params.interactive)
    mo.stop(key is None, mo.md("*No pair here. Choose another filter.*"))
    _match = duel.pair(key)[0]
    _given = ballot.given(_match)
    _view = "verdicts" if _given and view == "blind" else view
    _laid = ballot.see(_match, _view, told=only != "all")
    _place = f"{at + 1} of {len(pairs)}"
    _people = people.all.get(key, "")
    html(duel_html.pair_html(duel, key, _laid, place=_place, given=_given, people=_people))
    return


@app.cell(hide_code=True)
def vote_buttons(ballot, desk, duel, key, set_votes):
    def _press(choice):
        def _act(_):
            desk.vote(ballot, duel, key, choice)
            set_votes(lambda n: n + 1)

        return _act

    votes = mo.ui.array(
        [
            mo.ui.button(
                label=f"{choice} ({shortcut})",
                on_click=_press(choice),
                keyboard_shortcut=shortcut,
                disabled=key is None,
            )
            for choice, shortcut in (("left", "1"), ("tie", "2"), ("right", "3"), ("undo", "u"))
        ]
    )
    return (votes,)


@app.cell(hide_code=True)
def my_verdict(desk, get_votes, key, params, person, view, votes):
    get_votes()
    mo.stop(key is None or not params.interactive)
    _how = (
        "Give your name in the sidebar, choose the view *blind*, read both drafts, then press 1, 2 "
        "or 3. Sides are shuffled and names are masked; the line goes to "
        "`labels/compared_pairs.jsonl` of the suite."
    )
    _said = [html(fragments.note(desk.said))] if desk.said else []
    _hint = [] if person.value.strip() and view != "open" else [mo.md(_how)]
    mo.vstack([mo.md("**My verdict, blind**"), votes.hstack(justify="start"), *_said, *_hint])
    return


@app.cell(hide_code=True)
def report(duel, found, params, rows_file, together):
    if not params.interactive:
        _open = (
            "marimo edit notebooks/compare.py -- \\\n"
            f"  --suite {params.suite} --a {params.a} --b {params.b}"
        )
        print(duel_text.duel_text(duel, found, together=together, written=rows_file, cockpit=_open))
    reported = not params.interactive
    return (reported,)


@app.cell(hide_code=True)
def end(duel, reported):
    if reported:
        flags.tell(exit_status(duel))
        if exit_status(duel):
            sys.exit(exit_status(duel))
    return


if __name__ == "__main__":
    app.run()
