import queue
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed


def square(n):
    return n * n


lock, seen = threading.Lock(), []


def worker(jobs):
    while True:
        job = jobs.get()
        if job is None:
            break
        with lock:
            seen.append(job)
        jobs.task_done()


if __name__ == "__main__":
    with ThreadPoolExecutor(max_workers=3) as pool:
        futures = {pool.submit(square, n): n for n in range(4)}
        print(sorted(f.result() for f in as_completed(futures)), list(pool.map(square, [5, 6])))
    jobs = queue.Queue()
    threads = [threading.Thread(target=worker, args=(jobs,), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(10):
        jobs.put(n)
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.join()
    print(sorted(seen), threading.current_thread().name, threading.local() is not None)
    with ProcessPoolExecutor(max_workers=2) as pool:
        print(list(pool.map(square, range(3))))
    timer = threading.Timer(0.001, print, ["timer"])
    timer.start()
    timer.join()
    event = threading.Event()
    print(event.wait(0.001), time.perf_counter() > 0)
