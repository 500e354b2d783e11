"""Rows as lines of JSON: the same row always gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalkit.errors import BaselineError
from evalkit.hashing import canonical_json
from evalkit.models.plain import reply_from_plain, reply_to_plain
from evalkit.records import Finding, Row, RowStatus, Score, ScoreStatus, Verdict

__all__ = ["damaged_row", "read_rows", "row_from_json", "row_to_json"]


def row_to_json(row: Row) -> str:
    """One line of `rows.jsonl`, without the line end; empty fields are left out."""
    reply = row.reply
    data: dict[str, Any] = {
        "case_id": row.case_id,
        "stratum": row.stratum,
        "repeat": row.repeat,
        "rendered_prompt_sha": row.rendered_prompt_sha,
        "status": row.status.value,
        "error": row.error,
        "cluster": row.cluster,
        "criteria": {name: _score(row, name) for name in row.scores},
    }
    line = _dense(data)
    if reply is not None:
        plain = reply_to_plain(reply)
        line |= {"reply_text": plain.pop("text"), **plain}
        line |= {"finish": reply.finish.value, "call_key": reply.key}
    return canonical_json(line)


def row_from_json(line: str) -> Row:
    """The row behind one line.

    Raises:
        KeyError, TypeError, ValueError: If the line is not a row.
    """
    data = json.loads(line)
    criteria: Mapping[str, Any] = data.get("criteria", {})
    reply = None
    if "finish" in data:
        plain = {**data, "text": data.get("reply_text", "")}
        reply = reply_from_plain(plain, data.get("call_key", ""))
    return Row(
        case_id=data["case_id"],
        stratum=data["stratum"],
        repeat=data["repeat"],
        rendered_prompt_sha=data.get("rendered_prompt_sha", ""),
        reply=reply,
        status=RowStatus(data["status"]),
        error=data.get("error", ""),
        cluster=data.get("cluster"),
        scores={name: _read_score(entry) for name, entry in criteria.items()},
        verdicts={
            name: tuple(_read_verdict(v) for v in entry["verdicts"])
            for name, entry in criteria.items()
            if entry.get("verdicts")
        },
        by={name: entry.get("by", "") for name, entry in criteria.items()},
    )


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file, one at a time.

    Raises:
        BaselineError: If a line is not a row; names file and line.
    """
    with path.open(encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield row_from_json(line)
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise damaged_row(path, number, error) from error


def damaged_row(path: Path, number: int, error: Exception) -> BaselineError:
    """The error that names a line which is not a row."""
    return BaselineError(
        f"{path}:{number}: this line is not a row ({type(error).__name__}: {error}). "
        "The file is damaged: run again, the recorded replies make it free."
    )


def _score(row: Row, name: str) -> dict[str, Any]:
    score = row.scores[name]
    return _dense(
        {
            "value": score.value,
            "reason": score.reason,
            "status": score.status.value,
            "by": row.by.get(name, ""),
            "findings": [_dense(_fields(f)) for f in score.findings],
            "details": dict(score.details),
            "verdicts": [_dense(_fields(v)) for v in row.verdicts.get(name, ())],
        }
    )


def _read_score(data: Mapping[str, Any]) -> Score:
    return Score(
        value=data.get("value"),
        reason=data["reason"],
        status=ScoreStatus(data["status"]),
        findings=tuple(Finding(**f) for f in data.get("findings", ())),
        details=data.get("details", {}),
    )


def _read_verdict(data: Mapping[str, Any]) -> Verdict:
    fields: dict[str, Any] = {"value": None, "label": None, **data}
    fields["status"] = ScoreStatus(fields.get("status", "ok"))
    fields["flags"] = tuple(fields.get("flags", ()))
    return Verdict(**fields)


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _dense(data: Mapping[str, Any]) -> dict[str, Any]:
    """Without what says nothing: None, "", empty lists and objects. Zero and False stay."""
    return {k: v for k, v in data.items() if v or v == 0}
