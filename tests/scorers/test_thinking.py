from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.scorers.thinking import masked_text, thinking_spans, visible_text

HARMONY = "<|channel|>analysis<|message|>hm<|end|>"


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("plain", "plain"),
        ("  kept as it is \n", "  kept as it is \n"),
        ("<think>\nhm\n</think>\n\nYes.", "Yes."),
        ("<THINK>hm</THINK> Yes.", "Yes."),
        ("<thinking>a</thinking>Yes.<br>", "Yes.<br>"),
        ("[THINK]hm[/THINK]Yes.", "Yes."),
        ("◁think▷hm◁/think▷Yes.", "Yes."),
        (f"{HARMONY}<|start|>assistant<|channel|>final<|message|>Yes.", "Yes."),
        (f"{HARMONY}<|channel|>final<|message|>Yes.", "Yes."),
        ("<think>a<think>b</think>c\n</think>\nYes.", "Yes."),
        ("Yes.\n<think>hm</think>\nNo.", "Yes.\n\nNo."),
        ("Yes.\n \t<scratchpad>hm</scratchpad>", "Yes."),
        # the template put the opening mark into the prompt
        ("hm, let me see\n</think>\nYes.", "Yes."),
        ("hm, let me see </think>\nYes.", "Yes."),
        ("hm, let me see </think> \t\r\nYes.", "Yes."),
        # cut off while thinking
        ("<think>\nhm", ""),
        (" \n<think>hm", ""),
        ("<think>a</think><think>b", "<think>b"),
        ("<think>a</think>\n<think>b", ""),
        # words of a sentence
        ("Use the <think> tag.", "Use the <think> tag."),
        ("Write <think>so</think> inline.", "Write <think>so</think> inline."),
        ("The tag </think> ends it.", "The tag </think> ends it."),
        ("Answer first.\n<think>never closed", "Answer first.\n<think>never closed"),
        ("<thinker>no</thinker>", "<thinker>no</thinker>"),
        ('{"a": "<think>x</think>"}', '{"a": "<think>x</think>"}'),
        ("Done.<|end|>", "Done."),
    ],
)  # fmt: skip
def test_the_visible_text_is_what_a_reader_sees(text: str, visible: str) -> None:
    assert visible_text(text) == visible


def test_spans_cover_the_marks_and_masking_keeps_every_offset() -> None:
    text = "<think>hm</think>\nYes.\n<think>oh</think>!"
    assert thinking_spans(text) == ((0, 17), (23, 40))
    assert masked_text(text) == " " * 17 + "\nYes.\n" + " " * 17 + "!"


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "\n", " ", "a", "<|end|>", "[THINK]", "[/THINK]"])
    )
)
def test_spans_are_ordered_and_masking_keeps_the_length(pieces: list[str]) -> None:
    text = "".join(pieces)
    spans = thinking_spans(text)
    assert len(masked_text(text)) == len(text)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(0 <= start < end <= len(text) for start, end in spans)
