"""Deterministic scorers: a reply in, a value in 0..1 and its reason out. No key, no model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalkit.scorers.citations import CitationsClosed
from evalkit.scorers.compile import Compiles
from evalkit.scorers.content import ContentKept
from evalkit.scorers.contract import JsonContract, SourcesExist, SourcesWithin
from evalkit.scorers.leftovers import NoBoilerplate, NoLeftovers
from evalkit.scorers.links import AllowedHosts
from evalkit.scorers.material import MaterialComplete
from evalkit.scorers.numbers import SourcedNumbers
from evalkit.scorers.reference import ExactMatch, NumberMatch, TokenOverlap
from evalkit.scorers.refusal import NotRefusal
from evalkit.scorers.renders import Renders
from evalkit.scorers.report_score import ReportScore
from evalkit.scorers.retrieval import MeanReciprocalRank, Ndcg, PrecisionAtK, RecallAtK
from evalkit.scorers.scorer import Scorer, find_scorer, make_scorer, scorer_identity
from evalkit.scorers.text import Contains, Forbids, Length, Matches, NotTruncated

__all__ = ["SCORERS", "Scorer", "build_scorer", "scorer_hash"]

# The name a suite uses, and its class. A new scorer is a line here.
SCORERS: dict[str, type] = {
    "allowed_hosts": AllowedHosts,
    "citations_closed": CitationsClosed,
    "compiles": Compiles,
    "contains": Contains,
    "content_kept": ContentKept,
    "exact_match": ExactMatch,
    "forbids": Forbids,
    "json_contract": JsonContract,
    "length": Length,
    "matches": Matches,
    "material_complete": MaterialComplete,
    "mrr": MeanReciprocalRank,
    "ndcg": Ndcg,
    "no_boilerplate": NoBoilerplate,
    "no_leftovers": NoLeftovers,
    "not_refusal": NotRefusal,
    "not_truncated": NotTruncated,
    "number_match": NumberMatch,
    "precision_at_k": PrecisionAtK,
    "recall_at_k": RecallAtK,
    "renders": Renders,
    "report_score": ReportScore,
    "sourced_numbers": SourcedNumbers,
    "sources_exist": SourcesExist,
    "sources_within": SourcesWithin,
    "token_overlap": TokenOverlap,
}


def build_scorer(name: str, settings: Mapping[str, Any], folder: Path) -> Scorer:
    """Make the scorer that a criterion names.

    Args:
        name: A name of `SCORERS`, or "module:Class" for a scorer of the user's own.
        settings: Its settings, as they stand in the suite.
        folder: The suite's folder; settings that name files are read from there.

    Raises:
        ScorerError: If the scorer is unknown, or a setting is unknown, missing or wrong.
    """
    return make_scorer(name, find_scorer(name, SCORERS), settings, folder)


def scorer_hash(scorer: Scorer) -> str:
    """12 hex digits over the scorer's name, version and settings, files read in."""
    return scorer_identity(scorer, SCORERS)
