"""The job of bench_runner.py done by pydantic-evals; runs in an environment of its own.

    python peer_pydantic_evals.py '{"url": ..., "cases": 1000, "concurrency": 32, "judge": false}'

Prints CPU and wall seconds of the evaluation, imports done. Its task uses the HTTP client that the
openai package brings, its judge is its own LLMJudge.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

os.environ.update(PYDANTIC_DISABLE_PLUGINS="1", LOGFIRE_SEND_TO_LOGFIRE="false")

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, LLMJudge

try:
    import httpx2 as http
except ImportError:
    import httpx as http

PROMPT = (
    "Case {i}. You are looking up stock codes in a catalogue of small mechanical parts. The part "
    "is listed under shelf {a}, row {b}, and was last counted in week {c}. What is the code of "
    "item {i}? Answer with the code only."
)


async def evaluate(url: str, cases: int, concurrency: int, judge: bool) -> dict[str, float]:
    evaluators: list[Any] = []
    if judge:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        model = OpenAIChatModel("judge", provider=OpenAIProvider(base_url=url, api_key="x"))
        rubric = "Does the reply name the item that was asked for?"
        evaluators = [LLMJudge(rubric=rubric, include_input=True, model=model)]
    limits = http.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    async with http.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:

        async def task(text: str) -> str:
            body = {"model": "mock", "messages": [{"role": "user", "content": text}]}
            reply = await client.post(f"{url}/chat/completions", json=body)
            return reply.json()["choices"][0]["message"]["content"]

        items = [
            Case(
                name=str(i),
                inputs=PROMPT.format(i=i, a=i % 97, b=i % 31, c=i % 52),
                evaluators=(Contains(f"Case {i}."),),
            )
            for i in range(cases)
        ]
        data = Dataset(name="bench", cases=items, evaluators=evaluators)
        wall, cpu = time.perf_counter(), time.process_time()
        report = await data.evaluate(task, max_concurrency=concurrency, progress=False)
        spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    assert len(report.cases) == cases, f"{len(report.failures)} cases failed"
    return spent


if __name__ == "__main__":
    print(json.dumps(asyncio.run(evaluate(**json.loads(sys.argv[1])))))
