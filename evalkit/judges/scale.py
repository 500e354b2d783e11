"""Scale judges: one integer level, every level described; no scale without anchors."""

from __future__ import annotations

from evalkit.judges.asking import Asked, justified, prepare, verdict_of
from evalkit.judges.draft import DraftJudge
from evalkit.judges.judge import draft_of
from evalkit.judges.verdict import read_scale
from evalkit.records import Case, Reply, Verdict

__all__ = ["ScaleJudge"]

_BRIEF = {"en": "Levels:", "zh": "等级:"}
_CLOSING = {
    "en": (
        "Answer with one JSON object: first the justification (at most {chars} characters), then "
        'the score, one of {levels}:\n{{"justification": "...", "score": ...}}'
    ),
    "zh": (
        "只输出一个 JSON 对象:先写理由(不超过 {chars} 字),再写分数,取值为 {levels}:\n"
        '{{"justification": "...", "score": ...}}'
    ),
}


class ScaleJudge(DraftJudge):
    """One call per draft; the verdict's label is the level, its value (level - lo) / (hi - lo)."""

    def lowest(self) -> str:
        """A draft that is no answer gets the lowest level."""
        return str(min(self.levels))

    def value_of(self, level: int) -> float:
        """A level as 0..1."""
        return (level - min(self.levels)) / (max(self.levels) - min(self.levels))

    def prepared(self, case: Case, reply: Reply, repeat: int) -> Asked:
        """The request about one draft."""
        chars, levels = self.file.justification_chars, list(self.levels)
        language = self.file.language
        return prepare(
            self.file,
            case,
            {"draft": draft_of(reply)},
            brief="\n".join([_BRIEF[language], *(f"{k}: {v}" for k, v in self.levels.items())]),
            closing=_CLOSING[language].format(chars=chars, levels=", ".join(map(str, levels))),
            schema=justified(chars, levels, name="score", kind="integer"),
            max_tokens=100 + chars,
            repeat=repeat,
            flags=self.kin_flags(reply),
        )

    def read(self, asked: Asked, reply: Reply) -> dict[str, Verdict]:
        """The one verdict, under the judge's name."""
        reading = read_scale(reply.text, list(self.levels), pass_at=self.file.pass_at)
        value = None if reading.label is None else self.value_of(int(reading.label))
        return {self.name: verdict_of(reading, value, asked, reply, self.hash)}
