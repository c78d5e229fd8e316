"""Neutral sentences to compare embedders with: everyday questions, each with its answer.

Written for this purpose, on subjects that no test set covers. A question and its answer share at
most a word.
"""

from __future__ import annotations

from typing import Final

PAIRS: Final[tuple[tuple[str, str], ...]] = (
    ("When does the bakery on the corner open?", "They start selling bread at half past six."),
    ("Where did Nadia park the car?", "I left it behind the station, on the second level."),
    ("What is wrong with the washing machine?", "It stops after the first rinse and won't drain."),
    ("Who is taking notes at the meeting?", "Tomasz said he would write the minutes this time."),
    ("How much did the new bicycle cost?", "We paid four hundred and twenty for it, with lights."),
    ("Which port does the test server listen on?", "Staging answers on 8443 since the upgrade."),
    ("Why was the flight delayed?", "There was fog over the runway until late in the morning."),
    ("What does Elif's daughter study?", "She is in her third year of veterinary medicine."),
    ("Did the plumber fix the leak?", "He replaced the seal under the sink and it is dry now."),
    ("What colour should the fence be?", "We agreed on a dark green that matches the shutters."),
    ("How long does the soup have to simmer?", "Leave it on low heat for about forty minutes."),
    ("Which library parses the dates?", "We dropped our own code and use dateutil for that."),
    ("Where will the conference take place?", "This year everybody travels to Lisbon in May."),
    (
        "What did the doctor say about my knee?",
        "Nothing is torn, but you must rest it for a month.",
    ),
    ("Who borrowed the ladder?", "Our neighbour from upstairs still has it in his cellar."),
    ("When is the rent due?", "The landlord expects the money on the third of each month."),
    ("What breed is Oskar's dog?", "He got an old greyhound from the shelter."),
    ("How do I restart the backup job?", "Delete the lock file and run the script once by hand."),
    ("Is there anything vegetarian on the menu?", "You can have the risotto or the lentil curry."),
    ("What instrument does Mei play?", "She has been practising the cello since she was nine."),
    ("Why did the build fail last night?", "A certificate had expired, so nothing was downloaded."),
    ("Which train goes to the coast?", "Take the 9:12 from platform four and change once."),
    ("What is the password policy?", "Accounts need sixteen characters, and no forced renewal."),
    ("How many people came to the reading?", "About sixty, more than there were chairs for."),
    ("Where do we keep the spare keys?", "They hang on the hook inside the pantry door."),
    ("What are you reading at the moment?", "A long novel about a lighthouse keeper in Norway."),
    ("Who won the chess tournament?", "Priya beat the favourite in the last round."),
    ("When were the tomatoes planted?", "I put the seedlings out after the last frost in May."),
    ("What does the contract say about notice?", "Either side can end it three months ahead."),
    ("How is the weather up there?", "It has been snowing since Tuesday and the pass is shut."),
    ("Which bank do they use?", "Their account moved to the cooperative one in the old town."),
    ("What shall we give Hana for her birthday?", "She mentioned that she needs a warm raincoat."),
)
