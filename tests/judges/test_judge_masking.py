from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.judges.masking import mask, names_of, subject_of
from evalkit.records import Case, Document, Reply


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        ("As an AI language model trained by OpenAI, I cannot be sure.", "OpenAI"),
        ("I am ChatGPT and happy to help.", "ChatGPT"),
        ("Written with claude-3-5-sonnet today.", "claude"),
        ("Llama 3.1 says so.", "Llama"),
        ("SmolLM2-135M-Instruct wrote this.", "SmolLM2"),
        ("See report_final_v3.docx for more.", "report_final_v3"),
        ("The files are in out/new/draft.md.", "draft.md"),
        ("In the improved version the table is shorter.", "improved version"),
        ("This is the new, revised draft.", "revised draft"),
        ("Compared with the previous answer it is shorter.", "previous answer"),
        ("Draft v2: the table is shorter.", "v2"),
        ("作为一个人工智能语言模型,我认为可以。", "人工智能语言模型"),
        ("修订后的版本更短。", "修订后的版本"),
        ("This was drawn up by Maria Weber.", "Maria Weber"),
    ],
)
def test_what_betrays_the_author_is_replaced(text: str, trace: str) -> None:
    masked = mask(text, names=("Maria Weber",))
    assert trace.lower() not in masked.text.lower()
    assert masked.replaced


@pytest.mark.parametrize(
    "text",
    [
        "Snapshots are kept for 30 days; the newest is never deleted.",
        "The new plan costs 4 euros and the old plan ends in May.",
        "Version control keeps every draft.",
        "The model of the engine is a diesel.",
        "Use `git rebase` and then push.",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert mask(text).text == text


def test_what_the_case_is_about_stays() -> None:
    case = Case(
        "c",
        inputs={"question": "Does ChatGPT read config.toml?"},
        context=(Document("p", "Claude 3 was released in 2024."),),
    )
    text = "ChatGPT does not read config.toml; Claude 3 reads other.toml."
    masked = mask(text, subject=subject_of(case))
    assert masked.text == "ChatGPT does not read config.toml; Claude 3 reads [file]."


def test_names_come_from_the_drafts_own_records() -> None:
    assert names_of(Reply("x", model="a/m-1"), Reply("y")) == ("a/m-1", "m-1")


@given(st.text())
def test_masking_masked_text_changes_nothing(text: str) -> None:
    once = mask(text).text
    assert mask(once).text == once
