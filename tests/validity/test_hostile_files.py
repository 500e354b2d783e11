"""Whatever a file holds, reading it gives a value or one sentence, never another exception."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalkit.errors import EvalkitError
from evalkit.validity.anchor_files import file_digest, load_anchor
from evalkit.validity.anchor_readers import (
    read_arxiv_edits,
    read_asap,
    read_llmbar,
    read_pandalm,
)
from evalkit.validity.labels import read_labels
from evalkit.validity.licence import read_licence
from evalkit.validity.reconstruction import load_pairs
from evalkit.validity.sampling_plan import read_plan
from evalkit.validity.scoring import read_scores

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "anchor csv": ("a.csv", load_anchor),
    "anchor jsonl": ("a.jsonl", load_anchor),
    "digest": ("a.csv", file_digest),
    "asap": ("a.tsv", lambda path: read_asap(path, essay_set=4)),
    "arxiv": ("a.json", read_arxiv_edits),
    "llmbar": ("a.json", read_llmbar),
    "pandalm": ("a.json", read_pandalm),
    "labels": ("a.jsonl", read_labels),
    "licence": ("a.json", read_licence),
    "pairs": ("a.jsonl", load_pairs),
    "scores": ("a.csv", read_scores),
    "plan": ("plans/p.json", lambda path: read_plan(path.parent.parent, "p")),
}
ROW = b'{"item_id": 1, "annotator": [], "label": {}, "domain": "d", "context": [1], "input.x": NaN}'


@pytest.mark.parametrize("name", READERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@example(data=b"")
@example(data=b"item_id,annotator,label,domain,context\n1,a,yes,d,[{\n")
@example(data=b"item_id,annotator,label,domain,context\n1,a,yes,d,/etc/passwd\n")
@example(data=ROW)
@example(data=b'[{"label": 1, "edits-combination-0": [1], "output_1": null}]')
@example(data=b'{"0": {"edits-combination-0": {"0": {"intention": 3}}}}')
@example(data=b'{"0": {"edits-combination-0": {"0": 5}}}')
@example(data=b'{"item_id": "\\ud800", "annotator": "a", "label": "yes"}\n')
@example(data=b"[" * 5000)
def test_reading_gives_a_value_or_a_sentence(tmp_path: Path, name: str, data: bytes) -> None:
    file, read = READERS[name]
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    with contextlib.suppress(EvalkitError):
        read(path)
