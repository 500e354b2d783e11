"""Criteria judges: several yes/no questions in one call, each justified before its verdict."""

from __future__ import annotations

from evalkit.judges.asking import Asked, justified, object_of, prepare, verdict_of
from evalkit.judges.draft import DraftJudge
from evalkit.judges.judge import draft_of
from evalkit.judges.verdict import read_criteria
from evalkit.records import Case, Reply, Verdict

__all__ = ["CriteriaJudge"]

_BRIEF = {"en": "Criteria, each to be answered on its own:", "zh": "评判标准(逐条独立作答):"}
_CLOSING = {
    "en": (
        "Answer with one JSON object: for each criterion first the justification (at most {chars} "
        "characters, with the passage it rests on), then the verdict, {labels}:\n{form}"
    ),
    "zh": (
        "只输出一个 JSON 对象:每条标准先写理由(不超过 {chars} 字,并引用依据),"
        "再写结论,{labels}:\n{form}"
    ),
}


class CriteriaJudge(DraftJudge):
    """One call per draft; a verdict per criterion: 1 yes, 0 no, *cannot tell* unscored."""

    @property
    def names(self) -> tuple[str, ...]:
        """The criteria of the judge file."""
        return tuple(self.criteria)

    def lowest(self) -> str:
        """A draft that is no answer meets no criterion."""
        return "no"

    def prepared(self, case: Case, reply: Reply, repeat: int) -> Asked:
        """The request about one draft."""
        chars, labels = self.file.justification_chars, ["yes", "no"]
        labels += ["cannot_tell"] if self.may_abstain else []
        form = ", ".join(f'"{n}": {{"justification": "...", "verdict": "..."}}' for n in self.names)
        language = self.file.language
        questions = (f"- {name}: {question}" for name, question in self.criteria.items())
        return prepare(
            self.file,
            case,
            {"draft": draft_of(reply)},
            brief="\n".join([_BRIEF[language], *questions]),
            closing=_CLOSING[language].format(
                chars=chars, labels=" / ".join(labels), form=f"{{{form}}}"
            ),
            schema=object_of(dict.fromkeys(self.names, justified(chars, labels))),
            max_tokens=100 + len(self.names) * (60 + chars),
            repeat=repeat,
            flags=self.kin_flags(reply),
        )

    def read(self, asked: Asked, reply: Reply) -> dict[str, Verdict]:
        """One verdict per criterion."""
        readings = read_criteria(reply.text, self.names, abstain=self.may_abstain)
        values = {"yes": 1.0, "no": 0.0}
        return {
            name: verdict_of(r, values.get(r.label or ""), asked, reply, self.hash)
            for name, r in readings.items()
        }
