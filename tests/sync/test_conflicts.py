"""What two devices said of one thing, apart from each other, is told by date and device."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anaphora import Memory


@pytest.mark.promise("sync.conflicts")
def test_a_conflict_is_told_by_date_and_device(tmp_path: Path) -> None:
    """Both devices name both values; a new value, or forgetting one, ends it; no word is stored."""
    now = [datetime(2026, 3, 12, 9, tzinfo=UTC)]

    def clock() -> datetime:
        now[0] += timedelta(milliseconds=5)
        return now[0]

    (tmp_path / "remote").mkdir()
    with (
        Memory.open(tmp_path / "laptop", embedder="hashing", clock=clock) as laptop,
        Memory.open(tmp_path / "desktop", embedder="hashing", clock=clock) as desktop,
    ):
        laptop.sync.init(str(tmp_path / "remote"), name="laptop")
        desktop.sync.init(str(tmp_path / "remote"), name="desktop", key=laptop.sync.export_key())
        laptop.remember("Staging listens on 5433.", path="staging.port")
        rule = laptop.remember("Deploys happen on Tuesday.")
        for memory in (laptop, desktop, laptop):
            assert memory.sync.now().conflicts == ()
        laptop.remember("Staging listens on 5440.", path="staging.port")
        laptop.update(rule.id, text="Deploys happen on Wednesday.")
        now[0] += timedelta(days=7)
        desktop.remember("Staging listens on 5450.", path="staging.port")
        later = desktop.update(rule.id, text="Deploys happen on Friday.")
        desktop.remember("Lunch is at noon.", path="lunch")
        assert desktop.sync.now().conflicts == ()
        port = (
            'staging.port: On 12 March 2026 laptop said "Staging listens on 5440."; on 19 March '
            '2026 desktop said "Staging listens on 5450.". Current is what desktop said.'
        )
        days = (
            'On 12 March 2026 laptop said "Deploys happen on Wednesday."; on 19 March 2026 '
            'desktop said "Deploys happen on Friday.". Both are current.'
        )
        for memory in (laptop, desktop):
            assert {one.summary for one in memory.sync.now().conflicts} == {port, days}
            assert {one.summary for one in memory.sync.conflicts()} == {port, days}
        assert "5440" not in str(laptop.sync._store.get("conflicts"))
        laptop.remember("Staging listens on 5440.", path="staging.port")
        desktop.forget(later.id)
        assert [one.summary for one in laptop.sync.conflicts()] == [days]
        assert [one.summary for one in desktop.sync.conflicts()] == [port]
        assert laptop.sync.now().conflicts == desktop.sync.now().conflicts == ()
        laptop.sync.now()
        assert laptop.sync.conflicts() == desktop.sync.conflicts() == ()
