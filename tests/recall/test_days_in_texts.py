"""Days: those that a text names, those on which it was noted, and those that lie in the future."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from anaphora import Memory, NewTurn, Recall

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
DAY = timedelta(days=1)
UNRELATED = (
    "The coffee machine on the second floor was descaled.",
    "Lunch on Fridays is at the noodle place.",
    "Ida keeps the spare keys of the archive room.",
    "The printer needs A4 paper in tray two.",
)
LANES = ("memories", "turns", "search of memories", "search of turns")


class Home:
    """A memory whose lanes are told and asked alike."""

    def __init__(self, folder: Path, lane: str) -> None:
        self.now = NOW
        self.lane = lane
        self.memory = Memory.open(folder, clock=lambda: self.now)
        assert self.memory.ready(60)

    def tell(self, days_ago: float, text: str) -> None:
        """Note or say a text so many days before now."""
        at = self.now - days_ago * DAY
        if self.lane.endswith("memories"):
            self.memory.remember(text, created_at=at)
        else:
            conversation = f"c{abs(hash((text, at)))}"
            self.memory.conversations.extend(conversation, [NewTurn("user", text, ts=at)])

    def ask(self, question: str) -> Recall[Any]:
        """What the lane answers."""
        assert self.memory.ready(60)
        if self.lane.startswith("search"):
            return self.memory.search(question)
        if self.lane == "memories":
            return self.memory.recall(question)
        return self.memory.recall_conversation(None, question)


@pytest.fixture(params=LANES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    opened = Home(tmp_path / "home", str(request.param))
    for number, text in enumerate(UNRELATED):
        opened.tell(100 - 10 * number, text)
    yield opened
    opened.memory.close()


def texts_of(answer: Recall[Any]) -> list[str]:
    return [hit.text for hit in answer]


@pytest.mark.promise("recall.days_named")
@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("On 2026-03-05 the roof was mended.", "what was done on 5 March 2026?"),
        ("The roof was mended on 5 March 2026.", "what happened on 2026-03-05?"),
        ("The roof was mended on March 5, 2026.", "2026-03-05"),
        ("Am 5. März 2026 wurde das Dach geflickt.", "was geschah am 5.3.2026?"),
        ("Am 5.3.2026 wurde das Dach geflickt.", "was wurde am 5. März 2026 gemacht?"),
        ("El 5 de marzo de 2026 arreglamos el techo.", "¿qué pasó el 5 de marzo de 2026?"),
        ("Le toit a été réparé le 5 mars 2026.", "que s'est-il passé le 5 mars 2026 ?"),
        (
            "O telhado foi consertado em 5 de março de 2026.",
            "o que aconteceu em 5 de março de 2026?",
        ),
        ("2026年3月5日に屋根を直しました。", "2026年3月5日に何をした？"),
        ("2026年3月5日修好了屋顶。", "2026年3月5日发生了什么"),
    ],
)
def test_a_text_that_names_the_day_answers_a_question_for_it(
    home: Home, told: str, question: str
) -> None:
    """Whenever it was told, and though other texts name the day the other way round."""
    home.tell(30, told)
    home.tell(20, "On 2026-05-03 the fence was painted.")
    home.tell(10, "The lawn was sown on 30 May 2026.")
    answer = home.ask(question)
    assert texts_of(answer)[:1] == [told]
    assert not [notice for notice in answer.notices if "nothing" in notice]


@pytest.mark.promise("recall.days_named")
@pytest.mark.parametrize(
    ("told", "days_ago", "question"),
    [
        ("On 5 November the roof was mended.", 3, "what happened on 2026-11-05?"),
        ("Am 5. November wurde das Dach geflickt.", 3, "was war am 5.11.2026?"),
        ("In September the roof was mended.", 40, "what happened in September?"),
        ("The roof was mended on 2026-09-14.", 40, "what happened in September 2026?"),
    ],
)
def test_a_day_without_a_year_is_the_nearest(
    home: Home, told: str, days_ago: int, question: str
) -> None:
    """And a month holds its days."""
    home.tell(days_ago, told)
    home.tell(days_ago + 400, told.replace("roof", "old roof").replace("Dach", "alte Dach"))
    assert texts_of(home.ask(question))[:1] == [told]


@pytest.mark.promise("recall.days_named")
def test_what_names_the_day_stands_before_what_was_said_on_it(home: Home) -> None:
    """Both come."""
    home.tell(10, "On 2026-11-05 the roof was mended.")
    home.tell(20, "The lawn was sown by Ida.")
    for question in ("what happened on 5 November 2026?", "2026-11-05"):
        assert texts_of(home.ask(question)) == [
            "On 2026-11-05 the roof was mended.",
            "The lawn was sown by Ida.",
        ]


@pytest.mark.promise("recall.days_named")
@pytest.mark.parametrize(
    "question",
    [
        *("what did I note last week?", "what did we say last week?", "what was stored last week?"),
        *("was habe ich letzte Woche notiert?", "¿qué dijimos la semana pasada?"),
        *("qu'est-ce que j'ai noté la semaine dernière ?", "先週メモしたこと", "上周记了什么"),
    ],
)
def test_a_question_for_a_time_alone_gets_what_is_of_that_time(home: Home, question: str) -> None:
    """And nothing else."""
    home.tell(8, "The lawn was sown by Ida.")
    home.tell(1, "The gate was oiled.")
    assert texts_of(home.ask(question)) == ["The lawn was sown by Ida."]


@pytest.mark.promise("recall.days_named")
def test_yesterday_and_a_month_are_times_of_every_lane(home: Home) -> None:
    """With and without other words."""
    home.tell(200, "Ida bought a ladder at the market.")
    home.tell(1, "Ida bought a saw at the market.")
    assert texts_of(home.ask("what did I store yesterday?")) == ["Ida bought a saw at the market."]
    assert texts_of(home.ask("what did Ida buy at the market yesterday?"))[0].count("saw")
    assert texts_of(home.ask("what did Ida buy at the market in May?"))[0].count("ladder")


@pytest.mark.promise("recall.days_named")
@pytest.mark.parametrize(
    "question",
    [
        *(
            "what happens tomorrow?",
            "tomorrow",
            "what happens next week?",
            "what was said tonight?",
        ),
        *("what did we say in 2031?", "what happens in 2027?", "what happened before 1995?"),
        *("what did we decide since next month?", "was geschah vor 1960?", "明天会发生什么"),
    ],
)
def test_a_time_in_which_nothing_lies_is_told(home: Home, question: str) -> None:
    """No hits of other times; a notice names the time."""
    answer = home.ask(question)
    assert len(answer) == 0
    assert len(answer.notices) == 1
    assert answer.notices[0].startswith(
        ("nothing is noted", "nothing was said", "no turn is dated")
    )


@pytest.mark.promise("recall.times")
@pytest.mark.parametrize("when", ["in 2026", "in November", "in November 2026", "this year"])
def test_a_time_that_holds_the_present_asks_for_the_present(home: Home, when: str) -> None:
    """A year or month reverses no order."""
    home.tell(300, "My rent is 950 euros a month.")
    home.tell(30, "My rent is 1,020 euros a month since the increase.")
    assert "1,020" in texts_of(home.ask(f"what is my rent {when}?"))[0]


@pytest.mark.promise("recall.coming")
@pytest.mark.parametrize("ahead", [1 / 24, 9 / 24, 7, 400])
@pytest.mark.parametrize(
    ("coming", "present", "question"),
    [
        (
            "Staging listens on port 5433.",
            "Staging listens on port 5439.",
            "which port does staging use?",
        ),
        ("The rent is 950 euros.", "The rent is 1020 euros.", "how much is the rent?"),
        ("Das Treffen ist im Saal Nord.", "Das Treffen ist im Saal Süd.", "wo ist das Treffen?"),
    ],
)
def test_what_is_dated_ahead_does_not_hide_what_is_said_now(
    home: Home, ahead: float, coming: str, present: str, question: str
) -> None:
    """It is told as coming, and outdates nothing."""
    home.tell(-ahead, coming)
    home.tell(0, present)
    answer = home.ask(question)
    first, *others = answer
    assert (first.text, first.current) == (present, True)
    if any(hit.text == coming for hit in others):
        day = NOW + ahead * DAY
        assert f'dated in the future: from {day:%Y-%m-%d} "{coming}"' in answer.notices


@pytest.mark.promise("recall.coming")
def test_what_is_dated_ahead_is_told_so_where_it_stands_alone(home: Home) -> None:
    """And no longer once that time has come."""
    home.tell(-7, "The rent is 950 euros.")
    answer = home.ask("how much is the rent?")
    assert texts_of(answer)[0] == "The rent is 950 euros."
    assert answer.notices == ('dated in the future: from 2026-12-02 "The rent is 950 euros."',)
    home.now = NOW + 8 * DAY
    assert home.ask("how much is the rent?").notices == ()


@pytest.mark.promise("recall.coming")
@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=9), timedelta(days=375)])
@pytest.mark.parametrize("how", ["path", "id", "two ahead"])
def test_a_correction_said_now_holds_from_now_on(
    tmp_path: Path, ahead: timedelta, how: str
) -> None:
    """At a path too, and after the time has come that the wrong date named."""
    now = NOW
    with Memory.open(tmp_path / "home", embedder="hashing", clock=lambda: now) as memory:
        memory.remember("Port 1.", path="staging.port", created_at=NOW - 9 * DAY)
        wrong = memory.remember("Port 2.", path="staging.port", created_at=NOW + ahead)
        if how == "two ahead":
            memory.remember("Port 3.", path="staging.port", created_at=NOW + 2 * ahead)
        if how == "id":
            memory.update(wrong.id, text="Port 4.")
        else:
            memory.remember("Port 4.", path="staging.port")
        for later in (timedelta(0), DAY, ahead + DAY, 3 * ahead):
            now = NOW + later
            assert [hit.text for hit in memory.recall("which port?")] == ["Port 4."]
        now = NOW + DAY
        memory.remember("Port 5.", path="staging.port")
        assert [hit.text for hit in memory.recall("which port?")] == ["Port 5."]
        versions = memory.recall("which port?", as_of=NOW - DAY)
        assert [hit.text for hit in versions] == ["Port 1."]


# Told on Saturday, 26 September 2026, at noon: what is meant, and the day of it.
MEANT = [
    ("Yesterday the lift got stuck on the third floor.", "25 September"),
    ("Last night the lift got stuck on the third floor.", "25 September"),
    ("The lift got stuck the day before yesterday.", "24 September"),
    ("The auditors visit the plant tomorrow.", "27 September"),
    ("The auditors visit the plant in three days.", "29 September"),
    ("Three days ago the lift got stuck.", "23 September"),
    ("Next Friday the auditors visit the plant.", "2 October"),
    ("The lift got stuck on Friday.", "25 September"),
    ("The auditors visit the plant on Friday.", "2 October"),
    ("Last week the lift got stuck.", "16 September"),
    ("We fixed the lift on the 3rd of last month.", "3 August"),
    ("Gestern ist der Aufzug steckengeblieben.", "25 September"),
    ("In drei Tagen kommen die Prüfer.", "29 September"),
    ("Der Aufzug blieb am 3. letzten Monats stecken.", "3 August"),
    ("Letzten Freitag Panne im Aufzug.", "25 September"),
    ("Hier l'ascenseur est tombé en panne.", "25 September"),
    ("Les auditeurs viennent dans trois jours.", "29 September"),
    ("Ayer se quedó parado el ascensor.", "25 September"),
    ("Los auditores vienen dentro de tres días.", "29 September"),
    ("Anteontem o elevador ficou preso.", "24 September"),
    ("昨夜エレベーターが止まりました。", "25 September"),
    ("三日後に監査の人が来ます。", "29 September"),
    ("周五电梯坏了。", "25 September"),
    ("三天后审计员来。", "29 September"),
]


@pytest.mark.promise("recall.days_named")
def test_a_day_is_found_that_is_meant_by_the_day_of_telling(home: Home) -> None:
    """And no other day than that is said to hold nothing."""
    for told, _ in MEANT:
        home.tell(60, told)
    for told, day in MEANT:
        found = home.memory.search(f"what happened on {day}?", top_k=30, budget=10**6)
        assert told in texts_of(found), told
        assert not [notice for notice in found.notices if "nothing" in notice]
    assert set(texts_of(home.ask("what happened on 23 September?"))) == {
        "Three days ago the lift got stuck."
    }


@pytest.mark.promise("recall.days_named")
def test_what_is_of_a_day_stands_before_what_was_told_on_it_of_others(home: Home) -> None:
    """It comes as well: it was told then. Which day is meant is told."""
    home.tell(60, "Yesterday the lift got stuck on the third floor.")
    home.tell(60, "The hall was painted by Ida.")
    home.tell(61, "The bakery closed at noon.")
    home.tell(55, "The gate fell over on 26 September.")
    assert texts_of(home.ask("what happened on 26 September?")) == [
        "The gate fell over on 26 September.",
        "The hall was painted by Ida.",
        "Yesterday the lift got stuck on the third floor.",
    ]
    found = home.ask("what happened on 25 September?")
    assert texts_of(found) == [
        "Yesterday the lift got stuck on the third floor.",
        "The bakery closed at noon.",
    ]
    notice = 'on 2026-09-25, told 2026-09-26: "Yesterday the lift got stuck on the third floor."'
    assert notice in found.notices


@pytest.mark.promise("recall.days_named")
def test_what_is_told_for_the_future_is_found_when_it_has_come(home: Home) -> None:
    """And "tomorrow" of a past week is not tomorrow."""
    home.tell(2, "The auditors come in three days.")
    home.tell(9, "Tomorrow the chimney is swept.")
    found = home.ask("what happens tomorrow?")
    assert texts_of(found) == ["The auditors come in three days."]


@pytest.mark.promise("recall.days_named")
@pytest.mark.parametrize(
    ("moment", "told", "day"),
    [
        ("2026-09-26T23:30:00-08:00", "Yesterday the lift got stuck.", "25 September"),
        ("2026-09-26T00:30:00+02:00", "The lift got stuck today.", "26 September"),
        ("2026-09-26T00:30:00+02:00", "Last night the lift got stuck.", "25 September"),
        # Seven hours before, where the user is.
        ("2026-09-27T05:30:00+00:00", "Yesterday the lift got stuck.", "25 September"),
    ],
)
def test_the_day_is_that_of_the_zone_of_who_told_it(
    tmp_path: Path, moment: str, told: str, day: str
) -> None:
    """The offset of the turn; for one in UTC the zone of the user."""
    with Memory.open(
        tmp_path / "home",
        embedder="hashing",
        timezone="America/Los_Angeles",
        clock=lambda: NOW,
    ) as memory:
        turns = [
            NewTurn("user", "The hall was painted.", ts=NOW - 90 * DAY),
            NewTurn("user", told, ts=datetime.fromisoformat(moment)),
        ]
        memory.conversations.extend("c", turns)
        assert texts_of(memory.search(f"what happened on {day}?"))[:1] == [told]


@pytest.mark.promise("recall.days_named")
@pytest.mark.parametrize("lane", LANES[:2])
def test_a_sentence_without_a_day_means_none(tmp_path: Path, lane: str) -> None:
    """Though it holds words of time: nothing of it is of another day than it was told on."""
    home = Home(tmp_path / "home", lane)
    sentences = (Path(__file__).parent / "without_days.txt").read_text("utf-8").splitlines()
    for sentence in sentences:
        home.tell(60, sentence)
    for day in ("23 September", "25 September", "27 September", "2 October", "August", "October"):
        found = home.memory.search(f"what happened on {day} 2026?", top_k=50, budget=10**6)
        assert texts_of(found) == []
    assert len(home.memory.search("what was said on 26 September?", top_k=50, budget=10**6)) > 9
    home.memory.close()
