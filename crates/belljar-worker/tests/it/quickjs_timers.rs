//! Timers, microtasks, and when a run is over (A1).

use std::time::{Duration, Instant};

use belljar_contract::ErrorCode;
use serde_json::json;

use crate::harness::{run, value};

/// A1: the order is Node's.
#[test]
fn callbacks_come_in_order() {
    let code = "
        const order: string[] = [];
        const note = (name: string) => () => { order.push(name) };
        setTimeout(note('timeout 50'), 50);
        setTimeout(note('timeout 0'), 0);
        setTimeout(() => { note('timeout 0b')(); Promise.resolve().then(note('job of 0b')) });
        setTimeout(note('timeout 0c'));
        setImmediate(() => { note('immediate')(); queueMicrotask(note('job of immediate')) });
        setImmediate(note('immediate b'));
        queueMicrotask(note('microtask'));
        Promise.resolve().then(note('promise')).then(note('promise b'));
        note('sync')();
        await null;
        note('after await')();
        await new Promise((done) => setTimeout(done, 100));
        order";
    assert_eq!(
        value(code),
        json!([
            "sync",
            "microtask",
            "promise",
            "after await",
            "promise b",
            "timeout 0",
            "timeout 0b",
            "job of 0b",
            "timeout 0c",
            "immediate",
            "job of immediate",
            "immediate b",
            "timeout 50"
        ])
    );
}

/// A1: timers of one moment go off by delay, then by age; new ones wait for the next round.
#[test]
fn timers_are_sorted() {
    for (code, expected) in [
        (
            "const fired: string[] = []; [200, 5, 100, 5].forEach((delay, index) => \
                setTimeout(() => fired.push(`${delay} ${'abcd'[index]}`), delay)); \
                while (fired.length < 4) await new Promise((r) => setTimeout(r, 1)); fired",
            json!(["5 b", "5 d", "100 c", "200 a"]),
        ),
        (
            "const o: any[] = []; const d = (n: number) => new Promise((r) => setTimeout(r, \
                n)); setTimeout(() => { o.push('a'); setTimeout(() => o.push('c')) }); \
                setImmediate(() => o.push('b')); await d(50); o",
            json!(["a", "b", "c"]),
        ),
        (
            "let n = 0; await new Promise<void>((done) => { \
                const chain = () => { ++n < 500 ? setTimeout(chain, 0) : done() }; chain() }); n",
            json!(500),
        ),
        (
            "const o: any[] = []; setTimeout((...args: any[]) => o.push(...args), 1, 'x', 2); \
                await new Promise((r) => setTimeout(r, 5)); o",
            json!(["x", 2]),
        ),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A1: intervals repeat until they are cleared, by object or by number.
#[test]
fn timers_are_cleared() {
    for (code, expected) in [
        (
            "let n = 0; await new Promise<void>((done) => { const t = setInterval(() => { if \
                (++n === 3) { clearInterval(t); done() } }, 1) }); n",
            json!(3),
        ),
        (
            "let n = 0; const t = setTimeout(() => n++, 1); clearTimeout(t); await new \
                Promise((r) => setTimeout(r, 5)); n",
            json!(0),
        ),
        (
            "let n = 0; const t = setTimeout(() => n++, 1); clearTimeout(+t); await new \
                Promise((r) => setTimeout(r, 5)); n",
            json!(0),
        ),
        (
            "let n = 0; const t = setImmediate(() => n++); clearImmediate(t); await new \
                Promise((r) => setTimeout(r, 5)); n",
            json!(0),
        ),
        (
            "let n = 0; const t = setTimeout(() => n++, 1); t.close(); clearTimeout(undefined); \
                clearTimeout(null as any); clearTimeout(999); await new Promise((r) => \
                setTimeout(r, 5)); n",
            json!(0),
        ),
        (
            "const t = setTimeout(() => {}, 1); const kinds = [typeof t, typeof +t, t.hasRef(), \
                t.unref().hasRef(), t.ref() === t, t.constructor.name]; clearTimeout(t); kinds",
            json!(["object", "number", true, false, true, "Timeout"]),
        ),
        (
            "try { setTimeout('code' as any, 1) } catch (e) { `${e}` }",
            json!("TypeError: The \"callback\" argument must be of type function. Received string"),
        ),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A1: a value ends the run at once, nothing lets the timers go on.
#[test]
fn a_value_ends_the_run() {
    let began = Instant::now();
    let outcome = run("setTimeout(() => console.log('late'), 10_000); 'now'");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!((outcome.value.clone(), outcome.stdout()), (json!("now"), String::new()));
    for code in [
        "setTimeout(() => console.log('late'), 5)",
        "const t = setInterval(() => { console.log('late'); clearInterval(t) }, 2); t",
        "setTimeout(() => console.log('late'), 5); undefined",
        "setTimeout(() => console.log('never'), 9000).unref(); setTimeout(() => \
            console.log('late'), 5)",
    ] {
        let outcome = run(code);
        let seen = (outcome.error.clone(), outcome.value.clone(), outcome.stdout());
        assert_eq!(seen, (None, json!(null), "late\n".to_owned()), "{code}");
    }
}

/// A1: timers work whatever the guest does to the built-ins.
#[test]
fn timers_do_not_depend_on_the_guest() {
    let code = "
        Array.prototype.push = Array.prototype.pop = null as any;
        Map.prototype.get = Map.prototype.set = Map.prototype.delete = null as any;
        Math.max = Math.trunc = null as any;
        let log = '';
        await new Promise((done) => {
            setImmediate(() => { log += 'i' });
            const t = setInterval(() => { log += 'r'; clearInterval(t) }, 30);
            setTimeout(() => { log += 't' }, 1);
            setTimeout(done, 90);
        });
        log";
    assert_eq!(value(code), json!("tir"));
}

/// A1: sleeping really takes the time, and no more.
#[test]
fn sleeping_takes_its_time() {
    let code = "const began = Date.now(); await new Promise((r) => setTimeout(r, 60)); const \
        took = Date.now() - began; took >= 59 && took < 2000";
    assert_eq!(value(code), json!(true));
}

/// A7: a promise nothing can settle is told at once.
#[test]
fn a_stalled_run_is_an_error() {
    for code in [
        "await new Promise(() => {})",
        "await new Promise((r) => setTimeout(() => {}, 5))",
        "await new Promise((r) => { const t = setTimeout(r, 5); clearTimeout(t) })",
    ] {
        let outcome = run(code);
        let message = "the code awaits a promise that can no longer settle";
        assert_eq!(outcome.place(), (ErrorCode::RuntimeStalled, message, None, None), "{code}");
    }
}

/// A7: what a callback throws ends the run, with the callback's line.
#[test]
fn callbacks_that_throw_end_the_run() {
    for (code, line, column) in [
        ("setTimeout(() => {\n  throw new Error('late')\n}, 1)", 2, 9),
        ("setImmediate(() => { throw new Error('late') })", 1, 28),
        ("queueMicrotask(() => { throw new Error('late') })", 1, 30),
        ("let n = 0; setInterval(() => { if (++n > 2) throw new Error('late') }, 1)", 1, 51),
    ] {
        let place = (ErrorCode::RuntimeThrown, "Error: late", Some(line), Some(column));
        assert_eq!(run(code).place(), place, "{code}");
    }
}

/// A7: a rejection is an error when the jobs are done and nobody has handled it.
#[test]
fn unhandled_rejections_are_errors() {
    for code in [
        "Promise.reject(new Error('lost')); 1",
        "async function f() { throw new Error('lost') } f(); await new Promise((r) => \
            setTimeout(r, 1))",
        "setTimeout(() => { Promise.reject(new Error('lost')) }, 1)",
        "new Promise((_, reject) => setTimeout(() => reject(new Error('lost')), 1)); undefined",
        "Promise.resolve().then(() => { throw new Error('lost') }); undefined",
        "const p = Promise.reject(new Error('lost')); setTimeout(() => p.catch(() => {}), 5)",
    ] {
        let outcome = run(code);
        let seen = (outcome.place().0, outcome.place().1);
        assert_eq!(seen, (ErrorCode::RuntimeUnhandledRejection, "Error: lost"), "{code}");
    }
    for (code, expected) in [
        (
            "const p = Promise.reject(new Error('x')); await null; await null; await \
                p.catch((e) => e.message)",
            json!("x"),
        ),
        ("const p = Promise.reject(1); p.catch(() => {}); 'handled'", json!("handled")),
        (
            "await Promise.allSettled([Promise.reject(1)])",
            json!([{"status": "rejected", "reason": 1}]),
        ),
        ("await Promise.any([Promise.reject(1), Promise.resolve(2)])", json!(2)),
        ("try { await Promise.reject(new Error('a')) } catch (e) { e.message }", json!("a")),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}
