"""The `data` library, dates: reading, writing, rounding down, adding and subtracting. A date is a
datetime in UTC; other forms of a date are converted first. Days and months are those of UTC unless
a time zone is named."""

import calendar
import datetime
import email.utils
import math
import re

from .data_items import describe, is_number, number, plain

_UTC = datetime.timezone.utc
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=_UTC)
_LENGTHS = {
    "millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000,
    "week": 604_800_000,
}  # fmt: skip
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12}
# Numbers below this are seconds since 1970: as milliseconds they would all lie in early 1973.
_SECONDS_BELOW = 1e11
_ISO = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?"
    r"(?: ?(Z|[+-]\d{2}:?\d{2}))?)?",
    re.IGNORECASE | re.ASCII,
).fullmatch
_TOKENS = re.compile(
    r"\[[^\]]*\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|dddd|ddd|HH|H|hh|h|mm|m|ss|s|SSS|A|a|Z"
)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIELDS = {
    "YYYY": (r"\d{4}", "year"), "YY": (r"\d{2}", "year"), "MMMM": ("[A-Za-z]+", "month"),
    "MMM": ("[A-Za-z]+", "month"), "SSS": (r"\d{1,3}", "millisecond"),
    "A": (r"[AaPp]\.?[Mm]\.?", "half"), "a": (r"[AaPp]\.?[Mm]\.?", "half"),
    **{
        token: (r"\d{1,2}", name)
        for name, tokens in (
            ("month", "MM M"), ("day", "DD D"), ("hour", "HH H hh h"), ("minute", "mm m"),
            ("second", "ss s"),
        )
        for token in tokens.split()
    },
}  # fmt: skip


def _unit(unit, where: str) -> str:
    name = re.sub("s$", "", str(unit).lower())
    if name not in _LENGTHS and name not in _MONTHS_IN:
        known = ", ".join((*_LENGTHS, *_MONTHS_IN))
        raise ValueError(f"data.{where}: unknown unit {unit!r}, use {known}")
    return name


def _invalid(value, advice: str = ""):
    return ValueError(f"data.parseDate: not a date: {value!r}{advice}")


def _at(milliseconds, value):
    try:
        return _EPOCH + datetime.timedelta(milliseconds=milliseconds)
    except (OverflowError, ValueError):
        raise _invalid(value) from None


def _milliseconds(date) -> float:
    return (date - _EPOCH) / datetime.timedelta(milliseconds=1)


def _field(name: str, token: str, text: str):
    if name == "half":
        return text
    if token == "YY":
        return 2000 + int(text) - (100 if int(text) > 69 else 0)
    if token == "SSS":
        return int(text.ljust(3, "0"))
    if name != "month" or text.isdigit():
        return int(text)
    names = [month.lower() for month in _MONTHS]
    if text.lower() in names:
        return names.index(text.lower()) + 1
    short = [month[:3] for month in names]
    return short.index(text.lower()[:3]) + 1 if text.lower()[:3] in short else 0


def _by_pattern(text: str, pattern: str):
    """Reads a text by a pattern such as DD/MM/YYYY HH:mm."""
    fields, source, start = [], "", 0
    for match in _TOKENS.finditer(pattern):
        source += re.escape(pattern[start : match.start()])
        start = match.end()
        if match[0] not in _FIELDS:
            raise ValueError(f'data.parseDate: "{match[0]}" cannot be read')
        reader, name = _FIELDS[match[0]]
        source += f"({reader})"
        fields.append((name, match[0]))
    found = re.fullmatch(rf"\s*{source}{re.escape(pattern[start:])}\s*", text)
    if found is None:
        raise _invalid(text, f" (expected {pattern})")
    at = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "millisecond": 0}
    for (name, token), part in zip(fields, found.groups()):
        at[name] = _field(name, token, part)
    half = at.pop("half", "")
    if half:
        at["hour"] = at["hour"] % 12 + (12 if half[0] in "pP" else 0)
    microsecond = at.pop("millisecond") * 1000
    try:
        return datetime.datetime(**at, microsecond=microsecond, tzinfo=_UTC)
    except ValueError:
        raise _invalid(text, f" (expected {pattern})") from None


def _iso(match, value):
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
    offset = 0
    if zone and zone.upper() != "Z":
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        offset = -minutes if zone[0] == "-" else minutes
    try:
        moment = datetime.datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
            milliseconds * 1000, tzinfo=_UTC,
        )  # fmt: skip
        return moment - datetime.timedelta(minutes=offset)
    except (ValueError, OverflowError):
        raise _invalid(value) from None


def _parse_date(value, pattern=None):
    value = plain(value)
    if isinstance(value, datetime.datetime):
        return value.astimezone(_UTC) if value.tzinfo else value.replace(tzinfo=_UTC)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=_UTC)
    if is_number(value):
        if not math.isfinite(value):
            raise _invalid(value)
        return _at(value * 1000 if abs(value) < _SECONDS_BELOW else value, value)
    if not isinstance(value, str):
        raise TypeError(
            f"data.parseDate: expected a date, a number or a string, got {describe(value)}"
        )
    if pattern is not None:
        return _by_pattern(value, str(pattern))
    text = value.strip()
    if re.match(r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}", text):
        raise ValueError(
            f"data.parseDate: {value!r} may be day or month first; give a pattern, for example "
            '"DD/MM/YYYY"'
        )
    if re.fullmatch(r"-?\d{9,13}", text):
        return _parse_date(int(text))
    match = _ISO(text)
    if match:
        return _iso(match, value)
    try:
        return _parse_date(email.utils.parsedate_to_datetime(text))
    except (TypeError, ValueError, IndexError):
        raise _invalid(value) from None


def _zone(name):
    if name is None or name == "UTC":
        return _UTC
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(str(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"data: unknown time zone {name!r}") from None


def _offset_text(at) -> str:
    minutes = round(at.utcoffset().total_seconds() / 60)
    if minutes == 0:
        return "Z"
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


_WRITERS = {
    "YYYY": lambda at: f"{at.year:04}", "YY": lambda at: f"{at.year % 100:02}",
    "MMMM": lambda at: _MONTHS[at.month - 1], "MMM": lambda at: _MONTHS[at.month - 1][:3],
    "MM": lambda at: f"{at.month:02}", "M": lambda at: str(at.month),
    "DD": lambda at: f"{at.day:02}", "D": lambda at: str(at.day),
    "dddd": lambda at: _DAYS[at.weekday()], "ddd": lambda at: _DAYS[at.weekday()][:3],
    "HH": lambda at: f"{at.hour:02}", "H": lambda at: str(at.hour),
    "hh": lambda at: f"{at.hour % 12 or 12:02}", "h": lambda at: str(at.hour % 12 or 12),
    "mm": lambda at: f"{at.minute:02}", "m": lambda at: str(at.minute),
    "ss": lambda at: f"{at.second:02}", "s": lambda at: str(at.second),
    "SSS": lambda at: f"{at.microsecond // 1000:03}",
    "A": lambda at: "AM" if at.hour < 12 else "PM", "a": lambda at: "am" if at.hour < 12 else "pm",
    "Z": _offset_text,
}  # fmt: skip


def _format_date(value, pattern="YYYY-MM-DD", zone=None):
    at = _parse_date(value).astimezone(_zone(zone))

    def written(match) -> str:
        token = match[0]
        return token[1:-1] if token.startswith("[") else _WRITERS[token](at)

    return _TOKENS.sub(written, str(pattern))


def _start_of(value, unit, zone=None):
    name, place = _unit(unit, "startOf"), _zone(zone)
    date = _parse_date(value)
    wall = date.astimezone(place)
    midnight = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0}
    if name in _MONTHS_IN:
        months = _MONTHS_IN[name]
        month = (wall.month - 1) // months * months + 1
        start = wall.replace(month=month, day=1, **midnight)
    elif name in ("day", "week"):
        days = wall.weekday() if name == "week" else 0
        start = wall.replace(**midnight) - datetime.timedelta(days=days)
    else:
        length = _LENGTHS[name]
        shift = wall.utcoffset() / datetime.timedelta(milliseconds=1)
        milliseconds = math.floor((_milliseconds(date) + shift) / length) * length - shift
        return _at(milliseconds, value)
    return start.astimezone(_UTC)


def _add_time(value, amount, unit):
    name = _unit(unit, "addTime")
    if not is_number(amount):
        raise TypeError(f"data.addTime: the amount must be a number, got {describe(amount)}")
    date = _parse_date(value)
    if name in _LENGTHS:
        return date + datetime.timedelta(milliseconds=amount * _LENGTHS[name])
    months = date.year * 12 + date.month - 1 + math.trunc(amount * _MONTHS_IN[name])
    year, month = months // 12, months % 12 + 1
    # A month after the 31st of January is the last of February.
    day = min(date.day, calendar.monthrange(year, month)[1])
    return date.replace(year=year, month=month, day=day)


def _diff_time(start, end, unit="day"):
    """From one date to another: fractions up to weeks, whole months, quarters and years."""
    name = _unit(unit, "diffTime")
    start, end = _parse_date(start), _parse_date(end)
    if name in _LENGTHS:
        return number((end - start) / datetime.timedelta(milliseconds=1) / _LENGTHS[name])
    months = (end.year - start.year) * 12 + end.month - start.month
    reached = _add_time(start, months, "month")
    if months > 0 and reached > end:
        months -= 1
    elif months < 0 and reached < end:
        months += 1
    return math.trunc(months / _MONTHS_IN[name])


FUNCTIONS = {
    "parseDate": _parse_date,
    "formatDate": _format_date,
    "startOf": _start_of,
    "addTime": _add_time,
    "diffTime": _diff_time,
}
