//! Time zones for `Intl.DateTimeFormat` and the `data` library, from the database compiled in:
//! a cell has no `/usr/share/zoneinfo`, and the same code must give the same text everywhere.

use std::rc::Rc;

use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneDatabase},
};
use rquickjs::{Ctx, Function, Object, Value};

/// Adds `zoneName` and `zoneAt` to `native`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> rquickjs::Result<()> {
    let database = Rc::new(TimeZoneDatabase::bundled());
    let names = Rc::clone(&database);
    let zone_name = move |name: String| canonical_name(&names, &name);
    native.set("zoneName", Function::new(ctx.clone(), zone_name)?)?;
    let zone_at = move |ctx: Ctx<'js>, name: String, time_ms: f64| {
        let (offset, abbreviation, dst) = offset_at(&database, &name, time_ms)?;
        let abbreviation = rquickjs::String::from_str(ctx.clone(), &abbreviation).ok()?;
        let offset = Value::new_int(ctx.clone(), offset);
        Some(vec![offset, abbreviation.into_value(), Value::new_bool(ctx, dst)])
    };
    native.set("zoneAt", Function::new(ctx.clone(), zone_at)?)
}

/// The name as the database spells it; none when there is no such zone.
fn canonical_name(database: &TimeZoneDatabase, name: &str) -> Option<String> {
    let zone = database.get(name).ok()?;
    zone.iana_name().map(str::to_owned)
}

/// Seconds east of Greenwich, abbreviation and whether summer time is in force.
fn offset_at(database: &TimeZoneDatabase, name: &str, time_ms: f64) -> Option<(i32, String, bool)> {
    let zone: TimeZone = database.get(name).ok()?;
    // JavaScript dates reach further than the database; its last rules hold beyond its ends.
    let seconds = (time_ms / 1e3).floor() as i64;
    let within = seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    let time = Timestamp::from_second(within).ok()?;
    let info = zone.to_offset_info(time);
    Some((info.offset().seconds(), info.abbreviation().to_owned(), info.dst().is_dst()))
}
