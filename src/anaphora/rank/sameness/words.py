"""The words that the comparison of facts knows: what may be exchanged, and what names a difference.

In: nothing. Out: constants. An exchange is listed only if no sentence changes its meaning by it;
a pair that is nearly always safe ("buy" and "get", "over" and "to") is left out.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of `text` as a set."""
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split())


def _phrases(text: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    lines = (line.split("=") for line in text.strip().splitlines())
    return {tuple(old.split()): tuple(new.split()) for old, new in lines}


NEGATIONS = words(
    "not no never none nobody nothing nowhere neither nor without hardly barely rarely seldom "
    "cannot isnt stopped stop quit longer instead avoid avoids refuse refuses except unless"
)
QUANTITIES = words(
    "all some any every most many much few afew little alittle several both half only always often "
    "sometimes usually once least more less almost about around over under exactly each"
)
MODALS = words("must may might can could should would shall ought need needs wants maybe")
TENSES = words("is are was were be been being will has have had did does do used going")
WEEKDAYS = words("monday tuesday wednesday thursday friday saturday sunday")
TIME_WORDS = WEEKDAYS | words(
    "before after during since until ago today tomorrow yesterday now morning evening night"
)

_SMALL = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBERS = {word: value for value, word in enumerate(_SMALL.split())} | {
    word: value * 10 for value, word in enumerate(_TENS.split(), start=2)
}
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
ORDINALS = _pairs(
    "first=1st second=2nd third=3rd fourth=4th fifth=5th sixth=6th seventh=7th eighth=8th "
    "ninth=9th tenth=10th eleventh=11th twelfth=12th"
)
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun",
            "july jul", "august aug", "september sept sep", "october oct", "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip

CONTRACTIONS = _pairs("can't=can_not cannot=can_not won't=will_not shan't=shall_not let's=let_us")
# Only forms that mean one thing as a unit after a number: "m", "lb" and "pounds" do not.
UNITS = _pairs(
    """
    km=kilometre kms=kilometre kilometer=kilometre kilometers=kilometre kilometres=kilometre
    kg=kilogram kgs=kilogram kilograms=kilogram cm=centimetre centimeter=centimetre
    centimeters=centimetre centimetres=centimetre mm=millimetre millimeters=millimetre
    millimetres=millimetre mg=milligram milligrams=milligram ml=millilitre milliliters=millilitre
    millilitres=millilitre GB=gigabyte gigabytes=gigabyte MB=megabyte megabytes=megabyte
    ms=millisecond milliseconds=millisecond min=minute mins=minute minutes=minute hr=hour hrs=hour
    hours=hour secs=2nd seconds=2nd second=2nd sec=2nd days=day weeks=week months=month years=year
    yrs=year miles=mile dollars=dollar euros=euro percent=%
    """
)

SAME = _pairs(
    """
    favorite=favourite favorites=favourites color=colour colors=colours flavor=flavour
    neighbor=neighbour neighbors=neighbours behavior=behaviour center=centre theater=theatre
    organize=organise organized=organised organizes=organises analyze=analyse gray=grey
    traveling=travelling traveled=travelled canceled=cancelled jewelry=jewellery
    okay=ok tv=television telephone=phone mom=mother mum=mother dad=father kid=child kids=children
    bicycle=bike bicycles=bikes refrigerator=fridge photograph=photo photographs=photos
    purchases=buys perhaps=maybe till=until js=javascript ts=typescript postgres=postgresql
    k8s=kubernetes repo=repository repos=repositories config=configuration configs=configurations
    db=database dbs=databases automobile=car automobiles=cars begins=starts begin=start
    began=started daily=every_day weekly=every_week monthly=every_month yearly=every_year
    annually=every_year anyone=anybody everyone=everybody someone=somebody u.s=usa
    noon=t12h00 midnight=t00h00
    """
)

PHRASES = _phrases(
    """
    in order to=to
    due to=because of
    a few=afew
    a little=alittle
    a lot of=lots of
    is able to=can
    are able to=can
    has got a=has
    have got a=have
    has got an=has
    have got an=have
    e mail=email
    e mails=emails
    united states of america=usa
    united states=usa
    new york city=nyc
    each day=every day
    at the moment=
    right now=
    by the way=
    please note that=
    note that=
    remember that=
    keep in mind that=
    """
)
FILLERS = words("please also actually currently")

LIKING = words("like likes liked love loves loved hate hates hated prefer prefers preferred")
"""Verbs after which "to hike" and "hiking" say the same."""

AMBIGUOUS_CASE = words(
    """
    us it may march apple polish china turkey who aids will mark bill rose jack art grace hope faith
    amber dawn eve frank gene grant guy jade joy june lance may miles olive page penny pierce ray
    rich rob robin ruby sandy sue summer august violet wade ward go swift rust python shell windows
    meta alphabet amazon oracle target gap ford smart word access excel teams zoom slack notion
    spring flask express react node ant make chat square stripe visa cat dog chip
    brown black white green young long king knight fox wolf bird stone wood field park bush
    reading bath nice cork orange mobile phoenix troy lima bell cook baker smith mason hunter
    """
)
"""Words that mean something else with a capital letter: us and US, polish and Polish."""
