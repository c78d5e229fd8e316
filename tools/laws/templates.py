"""Subjects whose value changes, and pairs that both hold: sentences with a place for the value.

`{v}` is the value. Each list has several ways to say it; the first telling and a change are said
otherwise. Written for this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Changing:
    """A subject and an attribute with one value at a time.

    `first` tells a value, `changed` another one, `again` the same, `negated` that it holds no
    longer, `considered` what is only thought of, `asked` and `complained` tell nothing. `present`
    are questions for now, `temporal` such with a word of time that asks for nothing in the past,
    `past` for what was before.
    """

    label: str
    values: tuple[str, ...]
    first: tuple[str, ...]
    changed: tuple[str, ...]
    again: tuple[str, ...]
    negated: tuple[str, ...]
    considered: tuple[str, ...]
    asked: tuple[str, ...]
    complained: tuple[str, ...]
    present: tuple[str, ...]
    temporal: tuple[str, ...]
    past: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Statements that all hold: of one subject with several values, or of several subjects.

    `groups` are the labels in the order of `statements`; one label for all where one subject has
    several values.
    """

    groups: tuple[str, ...]
    statements: tuple[str, ...]
    questions: tuple[str, ...]


CHANGING: Final = (
    Changing(
        "staging.port",
        ("5433", "5439", "6100", "7020"),
        ("The staging database listens on port {v}.", "Staging's database is on port {v}."),
        (
            "We moved the staging database, it listens on port {v} now.",
            "The staging database was switched to port {v}.",
        ),
        ("Staging database is still on port {v}.", "As I said, the staging database has port {v}."),
        ("The staging database no longer listens on port {v}.",),
        (
            "We are thinking about port {v} for the staging database.",
            "Maybe the staging database should go to port {v} some day.",
        ),
        ("Which port does the staging database listen on?",),
        ("The staging database is so slow today.",),
        ("which port does the staging database listen on?", "how do I reach the staging database?"),
        (
            "before a release, which port do I use for the staging database?",
            "which staging database port do I try first?",
        ),
        ("which port did the staging database use before?", "what was the previous staging port?"),
    ),
    Changing(
        "mara.city",
        ("Ghent", "Porto", "Leipzig", "Turin"),
        ("Mara lives in {v}.", "Mara's flat is in {v}."),
        ("Mara moved to {v}.", "Mara lives in {v} now."),
        ("Mara still lives in {v}.", "Yes, Mara is in {v}."),
        ("Mara does not live in {v} any more.",),
        ("Mara is thinking about moving to {v}.", "Mara might move to {v} one day."),
        ("Where does Mara live?",),
        ("Mara never answers my letters.",),
        ("where does Mara live?", "in which city is Mara at home?"),
        (
            "where does Mara live, so that I can write before a holiday?",
            "in which town do I visit Mara first?",
        ),
        ("where did Mara live before?", "what was Mara's previous city?"),
    ),
    Changing(
        "own.editor",
        ("Vim", "Zed", "Emacs", "Helix"),
        ("My editor is {v}.", "I write code in {v}."),
        ("I switched to {v} for editing code.", "I edit everything in {v} now."),
        ("I am still happy with {v} as my editor.", "Yes, my editor is {v}."),
        ("I don't use {v} as my editor any more.",),
        ("I am considering {v} as an editor.", "Perhaps I will try {v} as my editor."),
        ("What is my editor?",),
        ("My editor crashed twice today.",),
        ("which editor do I use?", "what do I write code with?"),
        ("which editor do I open first in the morning?", "what do I write code with before lunch?"),
        ("which editor did I use before?", "what was my previous editor?"),
    ),
    Changing(
        "standup.time",
        ("9:15", "10:30", "8:45", "11:00"),
        ("The stand-up is at {v}.", "Our daily meeting starts at {v}."),
        ("The stand-up was moved to {v}.", "From now on the stand-up is at {v}."),
        ("Stand-up at {v} as always.", "The stand-up still starts at {v}."),
        ("The stand-up is not at {v} any longer.",),
        ("Somebody proposed {v} for the stand-up.", "We might hold the stand-up at {v}."),
        ("When is the stand-up?",),
        ("The stand-up takes far too long.",),
        ("when is the stand-up?", "at what time does the daily meeting start?"),
        (
            "when do I have to be there for the stand-up before a release?",
            "what time is the first stand-up of the week?",
        ),
        ("when was the stand-up before?", "what was the previous time of the stand-up?"),
    ),
    Changing(
        "own.phone",
        ("4417", "4471", "2290", "8815"),
        ("My desk phone is {v}.", "You reach my desk at extension {v}."),
        ("My desk phone has a new number, {v}.", "My desk phone changed to {v}."),
        ("My desk phone is still {v}.", "Again, my desk phone is {v}."),
        ("My desk phone is not {v} any more.",),
        ("I may ask for {v} as my desk phone.", "IT suggested {v} for my desk phone."),
        ("What is the number of my desk phone?",),
        ("My desk phone rings all the time.",),
        ("what is my desk phone?", "which extension reaches my desk?"),
        (
            "what is my desk phone, for the list before a holiday?",
            "which number of my desk do I give out first?",
        ),
        ("what was my desk phone before?", "what was my previous extension?"),
    ),
    Changing(
        "queue.product",
        ("RabbitMQ", "NATS", "Kafka", "Pulsar"),
        ("Our message queue is {v}.", "We use {v} as the message queue."),
        ("We replaced the message queue with {v}.", "The message queue is {v} now."),
        ("The message queue stays {v}.", "We still run {v} as the message queue."),
        ("We don't use {v} as the message queue any more.",),
        (
            "We are evaluating {v} as a message queue.",
            "Someone suggested {v} as our message queue.",
        ),
        ("Which message queue do we use?",),
        ("The message queue was stuck again.",),
        ("which message queue do we use?", "what passes messages between our services?"),
        (
            "which message queue must I start before a test?",
            "what message queue do I look at first?",
        ),
        ("which message queue did we use before?", "what was our previous message queue?"),
    ),
    Changing(
        "own.boxing",
        ("Mondays", "Thursdays", "Saturdays", "Tuesdays"),
        ("I go to boxing on {v}.", "Boxing training is on {v}."),
        ("Boxing was moved to {v}.", "My boxing training is on {v} now."),
        ("Boxing on {v}, as ever.", "I still go to boxing on {v}."),
        ("Boxing is not on {v} any more.",),
        ("I might go to boxing on {v} instead.", "The trainer thinks about {v} for boxing."),
        ("On which day is boxing?",),
        ("Boxing hurts my shoulder.",),
        ("on which day is boxing?", "when do I train?"),
        ("on which day is boxing, before a fight?", "when do I train first in a week?"),
        ("on which day was boxing before?", "what was the previous day of my boxing training?"),
    ),
    Changing(
        "tutor.person",
        ("Benoit", "Astrid", "Tiago", "Yara"),
        ("{v} gives Emil maths lessons.", "Emil's maths tutor is {v}."),
        ("{v} has taken over Emil's maths lessons.", "Emil's maths tutor is {v} now."),
        ("{v} is still Emil's maths tutor.", "Emil has maths with {v}, as I said."),
        ("{v} is no longer Emil's maths tutor.",),
        ("We thought of asking {v} to tutor Emil in maths.", "{v} might tutor Emil in maths."),
        ("Who is Emil's maths tutor?",),
        ("Emil hates maths.",),
        ("who is Emil's maths tutor?", "who teaches Emil arithmetic?"),
        ("who is Emil's maths tutor before a test?", "whom do I call first about Emil's maths?"),
        ("who was Emil's maths tutor before?", "who was Emil's previous maths tutor?"),
    ),
    Changing(
        "deploy.day",
        ("Mondays", "Wednesdays", "Thursdays", "Tuesdays"),
        ("Larkspur is deployed on {v}.", "The deploy day of Larkspur is {v}."),
        ("The deploy of Larkspur moved to {v}.", "Larkspur is deployed on {v} from now on."),
        ("Larkspur is still deployed on {v}.", "Deploys of Larkspur: {v}, unchanged."),
        ("Larkspur is not deployed on {v} any more.",),
        ("We might deploy Larkspur on {v} one day.", "Deploying Larkspur on {v} was discussed."),
        ("On which day is Larkspur deployed?",),
        ("The deploy of Larkspur failed again.",),
        ("on which day is Larkspur deployed?", "when does Larkspur go live?"),
        (
            "on which day is Larkspur deployed before a holiday?",
            "on which day of the week is Larkspur deployed first?",
        ),
        (
            "on which day was Larkspur deployed before?",
            "what was the previous deploy day of Larkspur?",
        ),
    ),
    Changing(
        "rent.sum",
        ("870 euros", "925 euros", "990 euros", "1,040 euros"),
        ("The rent of our flat is {v}.", "We pay {v} of rent for the flat."),
        ("The rent of our flat went up to {v}.", "The landlord raised our rent to {v}."),
        ("Our rent is still {v}.", "Rent of the flat: {v}, as before."),
        ("The rent of our flat is not {v} any more.",),
        ("The landlord is considering a rent of {v}.", "Our rent might become {v}."),
        ("How much is our rent?",),
        ("The rent of our flat is a scandal.",),
        ("how much is the rent of our flat?", "what do we pay to the landlord?"),
        (
            "how much rent must be there before a weekend?",
            "how much rent do I transfer first for the flat?",
        ),
        ("how much was our rent before?", "what was the previous rent of the flat?"),
    ),
    Changing(
        "own.dentist",
        ("Doctor Amrani", "Doctor Weiss", "Doctor Lindgren", "Doctor Okoye"),
        ("My dentist is {v}.", "I have my teeth done by {v}."),
        ("I changed my dentist, it is {v} now.", "My new dentist is {v}."),
        ("{v} is still my dentist.", "My dentist, {v}, is fine."),
        ("{v} is not my dentist any more.",),
        ("I am thinking of {v} as a dentist.", "A friend recommended {v} as a dentist."),
        ("Who is my dentist?",),
        ("My dentist let me wait for two hours.",),
        ("who is my dentist?", "who looks after my teeth?"),
        ("which dentist do I call before a holiday?", "which dentist do I call first?"),
        ("who was my dentist before?", "who was my previous dentist?"),
    ),
    Changing(
        "car.brand",
        ("a Skoda", "a Volvo", "a Fiat", "a Kia"),
        ("We drive {v}.", "Our family car is {v}."),
        ("We sold the old car and drive {v} now.", "Our family car is {v} now."),
        ("Our family car is still {v}.", "The car? {v}, as I said."),
        ("Our family car is not {v} any more.",),
        ("We are looking at {v} as a family car.", "Our next family car might be {v}."),
        ("What is our family car?",),
        ("Our family car makes strange noises.",),
        ("what is our family car?", "which car do we drive?"),
        (
            "which family car do we load before a holiday?",
            "which car do we drive to the lake first?",
        ),
        ("which car did we drive before?", "what was our previous family car?"),
    ),
    Changing(
        "tyres.place",
        ("the balcony", "the cellar", "the loft", "the shed"),
        ("The winter tyres are in {v}.", "We keep the winter tyres in {v}."),
        ("I carried the winter tyres to {v}.", "The winter tyres are in {v} now."),
        ("The winter tyres are still in {v}.", "Winter tyres: {v}, yes."),
        ("The winter tyres are not in {v} any more.",),
        ("We could put the winter tyres in {v}.", "Maybe {v} is a place for the winter tyres."),
        ("Where are the winter tyres?",),
        ("The winter tyres are far too heavy.",),
        ("where are the winter tyres?", "where do I find the wheels for snow?"),
        (
            "where do I get the winter tyres before a frost?",
            "where do I look first for the winter tyres?",
        ),
        ("where were the winter tyres before?", "what was the previous place of the winter tyres?"),
    ),
    Changing(
        "podcast.host",
        ("Buzzsprout", "Podbean", "Acast", "Castopod"),
        ("Our podcast is hosted at {v}.", "The host of our podcast is {v}."),
        ("We moved our podcast to {v}.", "Our podcast is hosted at {v} now."),
        ("Our podcast is still at {v}.", "The podcast remains with {v}."),
        ("Our podcast is not hosted at {v} any more.",),
        ("We are considering {v} for our podcast.", "Perhaps {v} would suit our podcast."),
        ("Where is our podcast hosted?",),
        ("Nobody listens to our podcast.",),
        ("where is our podcast hosted?", "who delivers our podcast's files?"),
        (
            "where is our podcast hosted, I must know before a launch?",
            "where do I upload our podcast first?",
        ),
        ("where was our podcast hosted before?", "what was the previous host of our podcast?"),
    ),
)

TOGETHER: Final = (
    Together(
        ("lena.allergy", "lena.allergy"),
        ("Lena is allergic to penicillin.", "Lena is allergic to latex."),
        ("what is Lena allergic to?", "which allergy does Lena have?"),
    ),
    Together(
        ("own.allergy", "own.allergy", "own.allergy"),
        (
            "I am allergic to hazelnuts.",
            "I am also allergic to birch pollen.",
            "I cannot stand wasp stings, I am allergic to them.",
        ),
        ("what am I allergic to?",),
    ),
    Together(
        ("mail.address", "web.address"),
        ("The mail server is 10.0.0.4.", "The web server is 10.0.0.9."),
        ("which address has the mail server?", "which address has the web server?"),
    ),
    Together(
        ("mara.phone", "jonas.phone"),
        ("Mara's desk phone is 4417.", "Jonas's desk phone is 4471."),
        ("what is Mara's desk phone?", "what is Jonas's desk phone?"),
    ),
    Together(
        ("production.approval", "staging.approval"),
        ("Production deploys are approved by Priya.", "Staging deploys are approved by Tomas."),
        ("who approves production deploys?", "who approves staging deploys?"),
    ),
    Together(
        ("emil.size", "nora.size"),
        ("Emil wears size 34 shoes.", "Nora wears size 31 shoes."),
        ("which shoe size does Emil have?", "which shoe size does Nora have?"),
    ),
    Together(
        ("kids.school", "kids.school"),
        ("Our children go to the Montessori school.", "Our children go to the music school too."),
        ("which school do our children go to?",),
    ),
    Together(
        ("api.languages", "api.languages"),
        ("The client library exists for Python.", "The client library exists for Go."),
        ("for which languages does the client library exist?",),
    ),
    Together(
        ("car.key", "bike.key"),
        ("The car key hangs by the door.", "The bike key hangs in the kitchen."),
        ("where does the car key hang?", "where does the bike key hang?"),
    ),
    Together(
        ("office.berlin.wifi", "office.oslo.wifi"),
        (
            "The Wi-Fi of the Berlin office is called heron.",
            "The Wi-Fi of the Oslo office is called puffin.",
        ),
        ("what is the Wi-Fi of the Berlin office?", "what is the Wi-Fi of the Oslo office?"),
    ),
    Together(
        ("own.sports", "own.sports"),
        ("I play badminton on Sundays.", "I play table tennis on Wednesdays."),
        ("which sports do I play?",),
    ),
    Together(
        ("parser.path", "printer.path"),
        ("The parser lives in src/lang/parser.py.", "The printer lives in src/lang/printer.py."),
        ("where does the parser live?", "where does the printer live?"),
    ),
)
