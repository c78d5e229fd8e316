"""The names of months and of days of the week, folded to lower case, and their numbers."""

_MONTHS = "january february march april may june july august september october november december"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"

MONTHS = {name: number for number, name in enumerate(_MONTHS.split(), 1)}
MONTH_SHORT = {name[:3]: number for name, number in MONTHS.items() if name != "may"} | {"sept": 9}
MONTH_OF = MONTHS | MONTH_SHORT
WEEKDAYS = {name: number for number, name in enumerate(_WEEKDAYS.split())}
