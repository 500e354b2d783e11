"""A job in a running loop: its outcome is kept, stop ends it at once, an error is a sentence."""

from __future__ import annotations

import asyncio

from evalkit.errors import UsageError
from evalkit.runs.execute import Progress
from evalkit.runs.job import Job


def test_the_outcome_is_kept_and_a_second_start_waits_for_the_end() -> None:
    async def story() -> None:
        job: Job[int] = Job()
        gate = asyncio.Event()

        async def work(progress: Progress) -> int:
            progress.total, progress.done = 2, 1
            await gate.wait()
            return 7

        assert job.start(work)
        assert not job.start(work)
        await asyncio.sleep(0)
        assert job.line == "running · 1 of 2 · 0 cut off · 0 errors"
        gate.set()
        await job.wait()
        assert (job.state, job.outcome) == ("done", 7)

    asyncio.run(story())


def test_stop_ends_work_and_says_that_what_arrived_is_kept() -> None:
    async def story() -> None:
        job: Job[None] = Job()

        async def work(progress: Progress) -> None:
            await asyncio.sleep(3600)

        job.start(work)
        await asyncio.sleep(0)
        job.stop()
        await asyncio.wait_for(job.wait(), 1)
        assert job.state == "stopped"
        assert "what arrived is kept" in job.line

    asyncio.run(story())


def test_an_error_is_one_sentence_in_place() -> None:
    async def story() -> None:
        job: Job[None] = Job()

        async def work(progress: Progress) -> None:
            raise UsageError("no such model")

        job.start(work)
        await job.wait()
        assert (job.state, job.line) == ("failed", "no such model")

    asyncio.run(story())
