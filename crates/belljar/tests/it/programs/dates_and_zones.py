import calendar
import time
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

moment = datetime(2024, 3, 31, 0, 30, tzinfo=timezone.utc)
for zone in ("Europe/Berlin", "America/New_York", "Asia/Kolkata"):
    print(zone, moment.astimezone(ZoneInfo(zone)).isoformat(), moment.astimezone(ZoneInfo(zone)).tzname())
print(moment.strftime("%A, %d %B %Y %I:%M %p %j %U"), repr(timedelta(days=1, hours=-3)), moment - timedelta(weeks=2))
print(calendar.month(2024, 2), calendar.isleap(2000), calendar.monthrange(2024, 2), date(2024, 12, 30).isocalendar())
print([(date(2024, 1, 31) + timedelta(days=30 * n)).isoformat() for n in range(3)], datetime.fromisoformat("2024-01-02T03:04:05+02:00").timestamp())
print(time.strftime("%Y", time.gmtime(0)), time.tzname[0], datetime.fromtimestamp(0).hour, abs(time.time() - datetime.now().timestamp()) < 60)
try:
    datetime.strptime("31/02/2024", "%d/%m/%Y")
except ValueError as error:
    print(error)
