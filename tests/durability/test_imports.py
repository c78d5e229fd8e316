"""An import that is cut off between any two of its writes, and made again."""

from __future__ import annotations

import pytest
from tests.durability.campaign import Campaign
from tests.durability.faults import Fault
from tests.durability.work import memory_of

from anaphora import ImportedConversation, ImportedTurn

pytestmark = pytest.mark.internal


@pytest.mark.promise("durable.killed")
def test_an_import_that_is_cut_off_keeps_its_title(campaign: Campaign) -> None:
    """A chat that is there has its title, and the next import adds the rest and nothing twice."""
    names = [call for call in campaign.log("import").calls if call.name == "rename"]
    for number in range(len(names)):
        fault = Fault(number, lambda call: call.name == "rename", kill=True)
        assert campaign.watched("import", fault).status == -9
        with memory_of(campaign.place / "home") as memory:
            for chat in ("imported0", "imported1"):
                thread = memory.conversations.get(chat)
                assert thread is None or thread.title == f"chat {chat[-1]}"
            again = [
                ImportedConversation(
                    "test",
                    f"chat{one}",
                    f"imported{one}",
                    (ImportedTurn("1", None, "user", f"imported question {one}"),),
                    title=f"chat {one}",
                )
                for one in range(2)
            ]
            report = memory.import_(again)
            assert report.added + report.known == 2
            for one in range(2):
                thread = memory.conversations.get(f"imported{one}")
                assert thread is not None
                assert thread.title == f"chat {one}"
