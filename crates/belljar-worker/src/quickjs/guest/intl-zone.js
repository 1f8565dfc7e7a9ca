// Time zones for Intl: their list, their local time, and their names. The database is zone.rs;
// names are CLDR's for the zones agents meet most, the others are named by their offset. Adds to `native.intl`.
(function (native) {
  "use strict";

  const { localeData, rootTable } = native.intl;

  // A cell has no time zone of its own.
  const DEFAULT_ZONE = "UTC";
  const UTC_NAMES = new Set([
    "UTC",
    "GMT",
    "ETC/UTC",
    "ETC/GMT",
    "ETC/UCT",
    "UCT",
    "ZULU",
    "ETC/ZULU",
  ]);
  const LINKS = {
    "US/Eastern": "America/New_York",
    "US/Central": "America/Chicago",
    "US/Mountain": "America/Denver",
    "US/Pacific": "America/Los_Angeles",
    "US/Alaska": "America/Anchorage",
    "US/Hawaii": "Pacific/Honolulu",
    "US/Arizona": "America/Phoenix",
    GB: "Europe/London",
    Japan: "Asia/Tokyo",
    PRC: "Asia/Shanghai",
  };
  /** The zone's name as it is spelled, or a RangeError. */
  function canonicalZone(requested) {
    if (requested === undefined) return DEFAULT_ZONE;
    const name = `${requested}`;
    if (UTC_NAMES.has(name.toUpperCase())) return "UTC";
    const offset = /^([+-])([01]\d|2[0-3])(?::?([0-5]\d))?$/.exec(name);
    if (offset !== null) return `${offset[1]}${offset[2]}:${offset[3] ?? "00"}`;
    const known = /^[A-Za-z0-9_+\-/]+$/.test(name) ? native.zoneName(name) : undefined;
    if (known === undefined || known === null)
      throw new RangeError(`Invalid time zone specified: ${name}`);
    return LINKS[known] ?? known;
  }

  /** {offset in seconds, abbreviation, summer} of a zone at a time. */
  function zoneState(zone, time) {
    if (zone === "UTC") return { offset: 0, abbreviation: "UTC", summer: false };
    const fixed = /^([+-])(\d\d):(\d\d)$/.exec(zone);
    if (fixed !== null) {
      const seconds = Number(fixed[2]) * 3600 + Number(fixed[3]) * 60;
      return { offset: fixed[1] === "-" ? -seconds : seconds, abbreviation: "", summer: false };
    }
    const [offset, abbreviation, summer] = native.zoneAt(zone, time);
    return { offset, abbreviation, summer };
  }

  /** An offset as `GMT+5:30`, or `GMT+05:30` when padded, in the locale's form. */
  function offsetText({ gmt, hour }, offset, isPadded) {
    const minutes = Math.floor(Math.abs(offset) / 60);
    const [east, west] = hour.split(";");
    const [, before, between] = /^([^H]*)H+([^m]*)mm/.exec(offset < 0 ? west : east);
    const hours = `${Math.floor(minutes / 60)}`.padStart(isPadded ? 2 : 1, "0");
    const rest = `${minutes % 60}`.padStart(2, "0");
    const tail = isPadded || minutes % 60 !== 0 ? between + rest : "";
    return gmt.replace("{0}", `${before}${hours}${tail}`);
  }

  let metazones;

  /** The zones that share names: America_Eastern for America/New_York. */
  function metazoneOf(zone) {
    if (metazones === undefined) {
      metazones = new Map();
      const table = rootTable("metazones");
      for (const name of Object.keys(table))
        for (const member of table[name].split(" ")) metazones.set(member, name);
    }
    return metazones.get(zone);
  }

  const STYLES = ["longGeneric", "longStandard", "longSummer", "shortGeneric", "shortStandard", "shortSummer"];

  /** Names of a zone in a locale by STYLES: its own before those it shares. */
  function namesOf(zones, zone) {
    const own = (zones.zone[zone] ?? "").split("|");
    const shared = (zones.meta[metazoneOf(zone)] ?? "").split("|");
    return STYLES.map((_, at) => own[at] || shared[at] || undefined);
  }

  /** The text that the option `timeZoneName` asks for; an offset where the locale has no name. */
  function zoneText(zone, time, style, locale) {
    const zones = localeData(locale.name, "zones");
    const state = zoneState(zone, time);
    const isLong = style.startsWith("long");
    const offset = () => offsetText(zones, state.offset, isLong);
    if (style.endsWith("Offset")) return offset();
    const names = namesOf(zones, zone);
    if (zone === "UTC") return (isLong ? names[1] : names[4]) ?? (isLong ? offset() : "UTC");
    // British time was an hour ahead all year round from 1968 to 1971, and had another name.
    const isOdd = metazoneOf(zone) === "GMT" && !state.summer && state.offset !== 0;
    if (isOdd) return offset();
    const season = style.endsWith("Generic") ? "Generic" : state.summer ? "Summer" : "Standard";
    const width = isLong ? "long" : "short";
    const name = names[STYLES.indexOf(width + season)];
    // Where clocks never change, the standard name serves as the generic one.
    const fixed = season === "Generic" && names[STYLES.indexOf(`${width}Summer`)] === undefined;
    return name ?? (fixed ? names[STYLES.indexOf(`${width}Standard`)] : undefined) ?? offset();
  }

  native.intl.canonicalZone = canonicalZone;
  native.intl.zoneState = zoneState;
  native.intl.zoneText = zoneText;
});
