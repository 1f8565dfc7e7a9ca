//! Whatever a cell sends, the host's decoder neither panics nor allocates beyond its caps; and
//! what it accepts, it writes back to the same bytes' meaning.
#![no_main]

use belljar_wire::{Caps, Command, Event, read_message, write_message};
use libfuzzer_sys::fuzz_target;

const CAPS: Caps = Caps { body_bytes: 1 << 16, text_bytes: 1 << 16 };

fuzz_target!(|bytes: &[u8]| {
    let _ = read_message::<Command>(&mut &*bytes, CAPS);
    let mut stream = bytes;
    while let Ok(event) = read_message::<Event>(&mut stream, CAPS) {
        let mut again = Vec::new();
        write_message(&mut again, &event).expect("what was read can be written");
        let reread: Event = read_message(&mut &*again, CAPS).expect("what was written can be read");
        assert_eq!(reread, event);
    }
});
