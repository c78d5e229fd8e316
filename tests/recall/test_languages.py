"""What is read of a text: words and languages, and questions in each of them."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anaphora import Memory
from anaphora.language.analyser import (
    MAX_TOKEN,
    STOP_WORDS,
    analyse,
    fold,
    index_text,
    query_terms,
    query_words,
)
from anaphora.language.languages.language import language_of, languages
from anaphora.language.times.reading import read_times

# Half surrogate pairs too, which `st.text()` leaves out.
ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I was running to the stores", ["i", "was", "run", "to", "the", "store"]),
        ("don't take the user's car", ["don't", "take", "the", "user", "car"]),
        ("Straße CAFÉ naïve", ["strass", "cafe", "naiv"]),
        ("привет мирами", ["привет", "мир"]),
        ("1,000,000 and 3.14", ["1000000", "and", "3.14"]),
        ("我喜欢 猫", ["我喜", "喜欢", "我", "喜", "欢", "猫"]),
        ("iPhone手机", ["iphone", "i", "phone", "手机", "手", "机"]),
        ("👍🏽 ❤️ 🇩🇪", ["👍", "❤", "🇩🇪"]),
        ("C++ and c#", ["c++", "and", "c#"]),
        ("ＦＵＬＬ ﬁne", ["full", "fine"]),
        ("0xDEADBEEF", ["0xdeadbeef"]),
        ("!!! ... --", []),
        ("", []),
    ],
)
def test_words_numbers_and_signs_become_tokens(text: str, tokens: list[str]) -> None:
    """Words are folded and stemmed, numbers joined, other scripts and emoji kept searchable."""
    assert analyse(text) == tokens


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("getUserName", "getusername", ["get", "user", "name"]),
        ("HTTPServer2", "httpserver2", ["http", "server", "2"]),
        ("snake_case_name", "snake_case_name", ["snake", "case", "name"]),
        ("__init__", "__init__", ["init"]),
        ("kebab-case", "kebab-case", ["kebab", "case"]),
        ("os.path.join", "os.path.join", ["os", "path", "join"]),
        ("/etc/hosts", "etc/hosts", ["etc", "host"]),
        ("src/anaphora/text.py", "src/anaphora/text.py", ["text.py", "text", "py"]),
        ("https://x.org/a?b=c.", "https://x.org/a?b=c", ["x.org", "a", "b", "c"]),
        ("first.last@example.com", "first.last@example.com", ["first.last", "example.com"]),
        ("std::vector", "std::vector", ["std", "vector"]),
    ],
)
def test_identifiers_stay_whole_and_come_in_parts(text: str, whole: str, parts: list[str]) -> None:
    """An identifier, path, address or version is found by itself and by its parts."""
    tokens = analyse(text)
    assert tokens[0] == whole
    assert set(parts) <= set(tokens)


ONE_TOKEN = {
    "2.3.1": ["v2.3.1", "2.3.1", "V2.3.1"],
    "3.10": ["v3.10", "3.10"],
    "4.1.2": ["§4.1.2", "4.1.2"],
    "err4021": ["ERR-4021", "ERR4021", "err_4021", "Err-4021"],
    "15:00": [
        *("3 pm", "3pm", "3 p.m.", "15:00", "15 Uhr", "15h", "15 h", "15.00 Uhr", "15 heures"),
        *(
            "15 horas",
            "3 de la tarde",
            "下午3点",
            "午後3時",
            "15時",
            "3 Uhr nachmittags",
            "3:00 PM",
        ),
    ],
    "15:30": ["3:30 pm", "15:30", "15.30 Uhr", "15 Uhr 30", "15h30", "15時30分", "15:30:00"],
    "2026-03-05": [
        *("2026-03-05", "5 March 2026", "March 5, 2026", "5th of March 2026", "Mar 5th, 2026"),
        *("5.3.2026", "05.03.2026", "2026/03/05", "5. März 2026", "5 de marzo de 2026"),
        *("le 5 mars 2026", "5 de março de 2026", "2026年3月5日", "2026년 3월 5일", "5 MARCH 2026"),
        *("2026-03-05T10:00:00Z", "notes/2026-03-05-standup.md", "1/2 on 5-3-2026"),
    ],
    "2026-03": ["March 2026", "2026-03", "März 2026", "marzo de 2026", "mars 2026", "2026年3月"],
    "--03-05": ["5 March", "March 5th", "am 5. März", "el 5 de marzo", "le 5 mars", "3月5日"],
    "2026-03-25": ["25/3/2026", "3/25/2026", "25.03.2026", "25/03/26"],
    "1200": ["$1,200", "1200"],
    "3f2a9c1": ["3f2a9c1", "3f2a9c1d8e4b7a6f5c0d9e8b7a6f5c4d3e2f1a0b", "3F2A9C1D8E"],
}


@pytest.mark.promise("index.analyser")
@pytest.mark.parametrize(
    ("token", "written"), [(token, one) for token, ways in ONE_TOKEN.items() for one in ways]
)
def test_a_thing_has_one_token_however_it_is_written(token: str, written: str) -> None:
    """Text and question agree on it, and the question names one exact thing."""
    assert token in index_text(written).tokens
    assert token in analyse(written)
    assert any(word.exact and token in word.tokens for word in query_words(written))


@pytest.mark.promise("index.analyser")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.1", "3.10"),
        ("v2.3.1", "v3.2.1"),
        ("4.2.1", "2.4.1"),
        ("ERR-4021", "ERR-4201"),
        ("5 March 2026", "3 May 2026"),
        ("2026-03-05", "2025-03-05"),
        ("3 pm", "3 am"),
        ("15 Uhr", "15:30"),
        ("March 2026", "May 2026"),
    ],
)
def test_what_differs_in_its_digits_is_another_thing(one: str, other: str) -> None:
    """No exact word of one stands for a token of the other."""
    exact = [word for word in query_words(one) if word.exact]
    assert exact
    for word in exact:
        assert not {*word.tokens} & {*index_text(other).tokens}


@pytest.mark.parametrize(
    "text",
    ["3 people", "the 30th of February 2026", "31.6.2026", "25 Uhr"],
)
def test_what_is_no_date_is_no_date(text: str) -> None:
    """Days that no calendar has, and hours that no clock has."""
    assert not any(token.startswith(("2026-02-", "2026-06-", "25:0")) for token in analyse(text))


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("we met on 05/03/2026", {"2026-03-05", "2026-05-03"}),
        ("wir haben uns am 05/03/2026 getroffen, und es war schön", {"2026-03-05"}),
        ("nos vimos el 05/03/2026 con los niños en la casa", {"2026-03-05"}),
    ],
)
def test_a_date_that_reads_two_ways_stands_for_both(text: str, readings: set[str]) -> None:
    """In a language that writes the day first it reads one way; what was written is kept."""
    tokens = set(analyse(text, keep_stop_words=False))
    assert tokens & {"2026-03-05", "2026-05-03"} == readings
    assert "05/03/2026" in tokens


@pytest.mark.promise("index.analyser")
def test_a_query_leaves_out_stop_words_unless_it_has_nothing_else() -> None:
    """Stop words alone are looked up as they are; a blank query has no terms."""
    assert query_terms("Where did the cats sleep, and where do cats eat?") == (
        "cat",
        "sleep",
        "eat",
    )
    assert query_terms("to be or not to be") == ("to", "be", "or", "not")
    assert query_terms("  \n?!") == ()


def test_stop_words_are_folded() -> None:
    """A stop word that is not in its folded form would never match."""
    assert {fold(word) for word in STOP_WORDS} == STOP_WORDS


@given(ANY_TEXT | ANY_TEXT.map("see https://example.org/{0}?q={0} there".format))
@example("https://example.org/d\ud800")
@example("https://\x1f")
def test_any_text_gives_clean_tokens(text: str) -> None:
    """Whatever the text, tokens are short, hold no white space and no surrogate, and repeat."""
    tokens = analyse(text)
    assert tokens == analyse(text)
    for token in tokens:
        assert 0 < len(token) <= MAX_TOKEN
        assert not any(c.isspace() or unicodedata.category(c) == "Cs" for c in token)


@given(st.text())
def test_the_terms_of_a_text_find_that_text(text: str) -> None:
    """Every term of a query is a token of the same words in a turn."""
    assert set(query_terms(text)) <= set(analyse(text))


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_case_does_not_count_but_for_the_parts_of_names(text: str) -> None:
    """Upper and lower case of plain words give the same tokens."""
    lower = [word for word in text.lower().split() if word.isalpha()]
    assert analyse(" ".join(lower)) == analyse(" ".join(word.upper() for word in lower))


@pytest.mark.parametrize("unit", ["a", "a+", "a.", "é ", "中", "-", "1,", "1,234", "\ud800", "\0"])
def test_long_texts_are_analysed_to_the_end(unit: str) -> None:
    """A megabyte of anything is analysed, and what follows it is found."""
    assert "marker" in analyse(unit * (300_000 // len(unit)) + " marker")


def test_naughty_strings_give_clean_tokens(naughty: list[str]) -> None:
    """Texts that trouble programs break nothing."""
    assert len(naughty) > 400
    for line in naughty:
        assert not any(c.isspace() for token in analyse(line) for c in token)


NOW = datetime(2025, 6, 17, 12, 0, tzinfo=UTC)  # a Tuesday
START = datetime(2025, 6, 2, 9, 0, tzinfo=UTC)

TALK = (
    "Der Zahnarzttermin ist am Freitag um neun.",
    "Die Häuser in der Gasse sind alle alt.",
    "Nuestros vecinos tienen dos gatos en la terraza.",
    "El fontanero viene el jueves por la tarde.",
    "Les étagères du couloir sont en chêne massif.",
    "Mes voisines jouent du violon tous les soirs.",
    "As lâmpadas das escadas foram trocadas ontem.",
    "Os meus vizinhos tocam bateria à noite.",
    "我的猫叫团子，很可爱。",
    "房租每个月四千二百元。",
    "毎週木曜日にプールで泳いでいます。",
    "自転車を図書館の前で盗まれました。",
    "The restaurant near the harbour closes on Mondays.",
    "My sister collects stamps and old maps.",
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home, embedder="hashing", clock=lambda: NOW) as memory:
        for number, line in enumerate(TALK):
            memory.conversations.append("chat", "user", line, ts=START + timedelta(minutes=number))
        memory.remember("Rafi keeps the spare umbrella behind the wardrobe.")
        yield memory


def first(memory: Memory, question: str) -> str:
    hits = memory.recall_conversation(None, question, mode="words", budget=10_000)
    return hits[0].text if hits else ""


@pytest.mark.promise("recall.languages")
@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("Wann ist der Termin beim Zahnarzt?", 0),
        ("Wie alt ist das Haus?", 1),
        ("¿De quién es el gato?", 2),
        ("¿Cuándo vienen los fontaneros?", 3),
        ("En quel bois est l'étagère ?", 4),
        ("Que joue ma voisine ?", 5),
        ("Que lampada foi trocada?", 6),
        ("O que o vizinho toca?", 7),
        ("我的猫叫什么名字？", 8),
        ("房租是多少？", 9),
        ("何曜日に泳いでいる？", 10),
        ("何を盗まれた？", 11),
    ],
)
def test_words_are_found_in_other_forms(memory: Memory, question: str, place: int) -> None:
    """A question finds a turn that has its words in another form, in the language of both."""
    assert first(memory, question) == TALK[place]


@pytest.mark.promise("recall.languages")
def test_a_long_word_finds_its_parts(tmp_path: Path) -> None:
    """A word that is written together finds the words it is made of."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.conversations.append_user("chat", "Die Kaution für die Wohnung sind 2400 Euro.")
        memory.conversations.append_user("chat", "Das Fahrrad steht jetzt im Keller.")
        assert first(memory, "Wie hoch ist die Wohnungskaution?").startswith("Die Kaution")


@pytest.mark.promise("recall.typos")
def test_a_misspelt_word_finds_its_turn_and_is_told(memory: Memory) -> None:
    """A word that no turn holds is read as the nearest that one does, and the answer says so."""
    found = memory.recall_conversation(None, "which resturant closes?", mode="words")
    assert found[0].text == TALK[12]
    assert found.notices == ('no turn holds "resturant": read as "restaurant"',)
    kept = memory.recall("where is the spare umbrela?")
    assert "umbrella" in kept[0].text
    assert kept.notices == ('no memory holds "umbrela": read as "umbrella"',)


@pytest.mark.promise("recall.typos")
def test_a_word_that_a_turn_holds_is_never_another_one(memory: Memory) -> None:
    """Nothing is read for a word that exists, nor for a short one."""
    for question in ("old maps", "do stamps close?", "mys ttt"):
        assert memory.recall_conversation(None, question, mode="words").notices == ()


@pytest.mark.promise("recall.typos")
@given(st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_typing_error_behind_the_first_letter_is_forgiven(
    memory: Memory, data: st.DataObject
) -> None:
    """A long word with a letter put in, left out, changed or swapped still finds its turn."""
    word = data.draw(st.sampled_from(["restaurant", "fontanero", "collects", "zahnarzttermin"]))
    at = data.draw(st.integers(1, len(word) - 2))
    letter = data.draw(st.sampled_from("qxz"))
    wrong = data.draw(
        st.sampled_from(
            [
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
            ]
        )
    )
    # What is left can be another form of the same word.
    assert word in first(memory, wrong).lower()


TEXTS = st.lists(
    st.sampled_from([*TALK, "ß", "é", "ぬ", "中", "don't", "getUserName", "1,000", "ñ ", "—"])
    | st.text(max_size=12)
).map(" ".join)


@given(TEXTS)
def test_every_word_of_a_text_finds_it(text: str) -> None:
    """Whatever is written, a question of the same words looks up tokens that its index has."""
    found = index_text(text)
    assert found == index_text(text)
    assert all(set(found.tokens) & set(word.tokens_in(languages())) for word in query_words(text))


@pytest.mark.promise("times.languages")
@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("Was habe ich gestern gesagt?", "2025-06-16", "2025-06-17"),
        ("Worüber haben wir letzte Woche gesprochen?", "2025-06-09", "2025-06-16"),
        ("Was war am 14. März?", "2025-03-14", "2025-03-15"),
        ("Was geschah zwischen dem 3. März und dem 5. April 2024?", "2024-03-03", "2024-04-06"),
        ("¿Qué pasó la semana pasada?", "2025-06-09", "2025-06-16"),
        ("¿Qué se me rompió en mayo?", "2025-05-01", "2025-06-01"),
        ("¿Qué dije de lunes a viernes?", "2025-06-09", "2025-06-14"),
        ("¿Qué dije el martes pasado?", "2025-06-10", "2025-06-11"),
        ("Qu'ai-je dit la semaine dernière ?", "2025-06-09", "2025-06-16"),
        ("Que s'est-il passé en août ?", "2024-08-01", "2024-09-01"),
        ("Qu'ai-je fait il y a trois jours ?", "2025-06-14", "2025-06-15"),
        ("O que falei na semana passada?", "2025-06-09", "2025-06-16"),
        ("O que eu disse na segunda-feira passada?", "2025-06-16", "2025-06-17"),
        ("上周我说了什么？", "2025-06-09", "2025-06-16"),
        ("三月二十七号我做了什么？", "2025-03-27", "2025-03-28"),
        ("从三月到五月我说了什么？", "2025-03-01", "2025-06-01"),
        ("昨日は何を言った？", "2025-06-16", "2025-06-17"),
        ("先週の金曜日に何をした？", "2025-06-13", "2025-06-14"),
        ("去年の夏はどこに行った？", "2024-06-01", "2024-09-01"),
    ],
)
def test_a_question_names_its_time(question: str, start: str, end: str) -> None:
    """The time that a question names in its language is read by the calendar."""
    (span,) = read_times(question, NOW)
    assert (f"{span.start:%Y-%m-%d}", f"{span.end:%Y-%m-%d}") == (start, end)
    assert question[span.start_char : span.end_char] == span.text


@pytest.mark.promise("times.languages")
@pytest.mark.parametrize(
    "question",
    ["Was mag Anna?", "¿Qué come el gato?", "Où est la clé ?", "Onde está a chave?", "猫叫什么？"],
)
def test_a_question_without_a_time_names_none(question: str) -> None:
    """Nothing is read where no time is named."""
    assert read_times(question, NOW) == ()


@pytest.mark.promise("recall.languages")
def test_a_question_for_a_time_alone_gets_what_was_said_then(tmp_path: Path) -> None:
    """ "What did we talk about last week?" in another language brings the turns of that week."""
    with Memory.open(tmp_path, embedder="hashing", clock=lambda: NOW) as memory:
        for days, text in ((40, "我买了新自行车。"), (6, "厨房刷成了浅蓝色。")):
            memory.conversations.append("chat", "user", text, ts=NOW - timedelta(days=days))
        hits = memory.recall_conversation(None, "上周我说了什么？")
    assert [hit.text for hit in hits] == ["厨房刷成了浅蓝色。"]


@pytest.mark.promise("recall.languages")
@pytest.mark.parametrize("code", sorted(languages()))
def test_every_file_knows_its_own_words(code: str) -> None:
    """A language is told by its function words, and its patterns compile."""
    known = languages()[code]
    words = sorted(known.written, key=lambda word: (-len(word), word))[:12]
    assert language_of(("" if not known.spaced else " ").join(words)) in (code, "zh")
    read_times("".join(words), NOW)


@pytest.mark.promise("recall.languages")
def test_another_language_needs_a_file_and_no_code(tmp_path: Path) -> None:
    """What is known of a language is what its file says."""
    source = Path(language_of.__code__.co_filename).parent / "data"
    for place in source.glob("*.toml"):
        shutil.copy(place, tmp_path)
    (tmp_path / "it.toml").write_text(
        'name = "Italian"\nstemmer = "italian"\n'
        'stop = "il lo gli di che è sono ho hai non per con della nella quando dove ieri"\n',
        encoding="utf-8",
    )
    known = languages(tmp_path)
    assert known["it"].stemmer == "italian"
    assert language_of("Quando sono nella casa della nonna?", known) == "it"
    assert language_of("When will you be at the house?", known) == "en"


def test_the_doctor_suggests_a_model_that_reads_the_home(tmp_path: Path) -> None:
    """Most turns in another language than the embedder reads: the doctor says what helps."""

    def told(lines: Sequence[str], name: str) -> str:
        with Memory.open(tmp_path / name) as memory:
            for line in lines:
                memory.conversations.append_user("chat", line)
            return next((one.detail for one in memory.doctor() if one.name == "language"), "")

    greek = [f"Αυτή είναι η πρόταση {number} και δεν είναι μεγάλη." for number in range(24)]
    assert "reindex --embedder ollama:MODEL" in told(greek, "greek")
    german = [f"Das ist der Satz {number} und er ist nicht lang." for number in range(24)]
    assert told(german, "german") == "most turns are in German"
    english = [f"This is sentence {number} and it is not long." for number in range(24)]
    assert told(english, "english") == "most turns are in English"


TOLD = {
    "de": (
        "Wer den Schlüssel braucht, findet ihn bei Frau Novak.",
        "Was ich gar nicht mag, ist Koriander.",
        "Wie immer zahlen wir die Miete am Ersten.",
        "Wie besprochen kommt der Klempner am Montag.",
        "Wo der Hund schläft, darf keiner saugen.",
        "Wann immer es regnet, tropft das Dach.",
        "Was die Heizung angeht, hilft nur Herr Brandl.",
        "Wer die Heizung wartet, ist Herr Brandl.",
        "Welches Auto wir kaufen, entscheidet Mia.",
    ),
    "fr": (
        "Quand il pleut, la cave est inondée.",
        "Quand je voyage, la voisine arrose les plantes.",
        "Qui s'occupe de la chaudière, c'est monsieur Ferrand.",
        "Où que j'aille, le chien me suit.",
        "Quoi qu'il arrive, le loyer part le 5.",
        "Quel que soit le temps, Léo va au violon à vélo.",
        "Qu'il pleuve ou non, je cours le mardi.",
        "Quand Papa est malade, il appelle le docteur Petit.",
    ),
    "es": (
        "Cuando llueve, se inunda el sótano.",
        "Cuando viajo, la vecina riega las plantas.",
        "Quien arregló la caldera fue Ramírez.",
        "Como siempre, el alquiler se paga el día 1.",
        "Como no hay ascensor, subimos la compra a pie.",
        "Donde aparcamos el coche, hay sombra.",
        "Quien tiene la llave es la vecina del tercero.",
    ),
    "pt": (
        "Quando chove, a garagem alaga.",
        "Quando viajo, o porteiro rega as plantas.",
        "Quem consertou o chuveiro foi o seu Anselmo.",
        "Como sempre, o aluguel vence no dia 10.",
        "Como não tem elevador, subimos as compras a pé.",
        "Quem guarda a chave é o porteiro.",
        "O que o Rafael mais gosta é de pescar.",
        "Onde estacionamos o carro, tem sombra.",
    ),
    "ja": (
        "父はいつも六時に起きる。",
        "誰かが鍵を郵便受けに入れてくれる。",
        "健太は何でも食べる。",
        "ぶどうが大好きだ。",
        "ケーキなどのお菓子は控えている。",
        "どうぞよろしくお願いします。",
        "いつか京都に住みたい。",
        "犬はどこでも寝る。",
        "母はなぜかトマトが苦手だ。",
        "祖母は何度もその店に行った。",
    ),
    "zh": (
        "他什么都吃。",
        "我几乎每天跑步。",
        "谁都可以用这把钥匙。",
        "猫在哪里都能睡。",
    ),
}
ASKED = {
    "de": (
        "Wer hat den Schlüssel?",
        "Was mag ich gar nicht?",
        "Wie heißt der Handwerker, der die Heizung gewartet hat?",
        "Wo steht, wie man hier ins Internet kommt?",
        "Wann ist die Miete fällig?",
        "Wer kann mir aufmachen, wenn ich mich ausgesperrt habe?",
        "Welches Auto wollen wir kaufen?",
        "Wie lange ist mein Ausweis noch gültig?",
        "Was die Miete kostet?",
    ),
    "fr": (
        "Quand est-ce que je paie le loyer ?",
        "Quand part le loyer ?",
        "Qui s'occupe de la chaudière ?",
        "Où ai-je mis les skis ?",
        "Quoi de neuf avec la voiture ?",
        "Quel jour passent les poubelles ?",
        "Qu'est-ce qu'on mange, déjà ?",
    ),
    "es": (
        "¿Cuándo hay que pagar?",
        "cuando hay que pagar el alquiler",
        "quien arreglo la caldera",
        "quien fue el fontanero",
        "como se llama mi dentista",
        "donde aparcamos el coche",
        "¿Quién tiene la llave, la vecina?",
        "¿Quién dijo que la clave es esa?",
    ),
    "pt": (
        "Quando vence o aluguel?",
        "Quem consertou o chuveiro?",
        "Quem é a minha dentista?",
        "Como se chama a minha dentista?",
        "O que é que o Rafael não come?",
        "Onde deixei a prancha?",
        "Quem da família é alérgico a camarão?",
        "Quem disse que o chuveiro foi consertado?",
        "O que o Rafael não pode comer?",
    ),
    "ja": (
        "いつ払うんだっけ",
        "誰に頼む",
        "何を食べられない",
        "どこに置いた",
        "旅券はいつまで使える",
        "どんな車",
        "お父さんは何を服用している",
        "鍵は誰が持っていますか",
        "どのくらいの頻度",
        "何時から運動できる",
        "いくらかかる",
    ),
    "zh": (
        "他喜欢吃什么",
        "钥匙在哪里",
        "谁有钥匙",
        "几点开门",
        "有几个",
    ),
}


@pytest.mark.promise("recall.languages")
@pytest.mark.parametrize("lane", ["memories", "turns"])
@pytest.mark.parametrize("code", TOLD)
def test_a_statement_that_begins_like_a_question_answers(
    code: str, lane: str, tmp_path: Path
) -> None:
    """Only what asks counts less: not "quem consertou o chuveiro foi o Anselmo"."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        for number, text in enumerate((*TOLD[code], *ASKED[code])):
            if lane == "memories":
                memory.remember(text)
            else:
                memory.conversations.append_user(f"chat {number}", text)

        def asks(text: str) -> bool:
            if lane == "memories":
                kept = memory.recall(text, top_k=30, min_confidence=0)
                return any("unanswered" in hit.factors for hit in kept if hit.text == text)
            said = memory.recall_conversation(None, text, top_k=30, min_confidence=0)
            return any("unanswered" in hit.factors for hit in said if hit.text == text)

        assert [text for text in TOLD[code] if asks(text)] == []
        assert [text for text in ASKED[code] if not asks(text)] == []
