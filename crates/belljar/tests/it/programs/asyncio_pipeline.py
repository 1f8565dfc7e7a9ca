import asyncio
import contextlib


async def produce(queue, n):
    for i in range(n):
        await queue.put(i)
        await asyncio.sleep(0)
    await queue.put(None)


async def consume(queue):
    total = 0
    while (item := await queue.get()) is not None:
        total += item
    return total


@contextlib.asynccontextmanager
async def session(name):
    print("open", name)
    try:
        yield name.upper()
    finally:
        print("close", name)


async def main():
    queue = asyncio.Queue(maxsize=2)
    _, total = await asyncio.gather(produce(queue, 10), consume(queue))
    print("total", total)
    async with session("db") as name, asyncio.Lock():
        print(name)
    try:
        await asyncio.wait_for(asyncio.sleep(5), timeout=0.01)
    except asyncio.TimeoutError as error:
        print("timeout", type(error).__name__)
    results = await asyncio.gather(*(asyncio.sleep(0.001 * n, n) for n in (3, 1, 2)), asyncio.to_thread(sum, [1, 2]), return_exceptions=True)
    print(results, [r async for r in aiter_of([1, 2])])
    semaphore, task = asyncio.Semaphore(1), asyncio.create_task(asyncio.sleep(9), name="sleeper")
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    print(task.cancelled(), task.get_name(), semaphore.locked())


async def aiter_of(items):
    for item in items:
        yield item


asyncio.run(main())
