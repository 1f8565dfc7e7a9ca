import functools
import logging
import random
import sys
import time

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("retry")


def retry(times=3, exceptions=(Exception,), base=0.001):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            for attempt in range(1, times + 1):
                try:
                    return function(*args, **kwargs)
                except exceptions as error:
                    log.warning("attempt %d/%d of %s failed: %r", attempt, times, function.__name__, error)
                    if attempt == times:
                        raise
                    time.sleep(base * 2**attempt + random.uniform(0, base))
        return wrapper
    return decorate


@retry(times=3, exceptions=(ConnectionError, TimeoutError))
def flaky(results=[]):
    """Fails twice."""
    results.append(1)
    if len(results) < 3:
        raise ConnectionError(f"reset {len(results)}")
    return len(results)


print(flaky(), flaky.__name__, flaky.__doc__)
try:
    retry(times=1)(lambda: 1 / 0)()
except ZeroDivisionError as error:
    log.exception("gave up") if False else print(type(error).__name__, error)
