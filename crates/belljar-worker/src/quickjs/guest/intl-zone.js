// Time zones for Intl: their list, their local time, and their names. The database is zone.rs;
// names beyond abbreviations are given in English for the zones agents meet most, the others are
// named by their offset. Adds to `native.intl`.
(function (native) {
  "use strict";

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
  // Abbreviation at hours from Greenwich: where people read it as the zone's name.
  const AMERICAN =
    "EST-5 EDT-4 CST-6 CDT-5 MST-7 MDT-6 PST-8 PDT-7 AKST-9 AKDT-8 HST-10 HDT-9 GMT0 UTC0";
  const EUROPEAN = "GMT0 BST1 IST1 WET0 WEST1 CET1 CEST2 EET2 EEST3 UTC0";
  const LONG = {
    UTC0: "Coordinated Universal Time",
    GMT0: "Greenwich Mean Time",
    BST1: "British Summer Time",
    IST1: "Irish Standard Time",
    "EST-5": "Eastern",
    "EDT-4": "Eastern",
    "CST-6": "Central",
    "CDT-5": "Central",
    "MST-7": "Mountain",
    "MDT-6": "Mountain",
    "PST-8": "Pacific",
    "PDT-7": "Pacific",
    "AKST-9": "Alaska",
    "AKDT-8": "Alaska",
    "HST-10": "Hawaii-Aleutian",
    "AST-4": "Atlantic",
    "ADT-3": "Atlantic",
    "NST-3.5": "Newfoundland",
    "NDT-2.5": "Newfoundland",
    WET0: "Western European",
    WEST1: "Western European",
    CET1: "Central European",
    CEST2: "Central European",
    EET2: "Eastern European",
    EEST3: "Eastern European",
    MSK3: "Moscow",
    "IST5.5": "India",
    PKT5: "Pakistan",
    CST8: "China",
    HKT8: "Hong Kong",
    JST9: "Japan",
    KST9: "Korean",
    WIB7: "Western Indonesia Time",
    AWST8: "Australian Western",
    "ACST9.5": "Australian Central",
    "ACDT10.5": "Australian Central",
    AEST10: "Australian Eastern",
    AEDT11: "Australian Eastern",
    NZST12: "New Zealand",
    NZDT13: "New Zealand",
    SAST2: "South Africa Standard Time",
    EAT3: "East Africa Time",
    CAT2: "Central Africa Time",
    WAT1: "West Africa Standard Time",
  };
  const BY_ZONE = {
    "America/Sao_Paulo": "Brasilia",
    "America/Argentina/Buenos_Aires": "Argentina",
    "Asia/Singapore": "Singapore",
    "Asia/Dubai": "Gulf",
    "Asia/Bangkok": "Indochina Time",
    "America/Bogota": "Colombia",
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

  function offsetText(offset, word, padded) {
    const minutes = Math.floor(Math.abs(offset) / 60);
    const sign = offset < 0 ? (word === "UTC" ? "−" : "-") : "+";
    const hours = `${Math.floor(minutes / 60)}`.padStart(padded ? 2 : 1, "0");
    const rest = `${minutes % 60}`.padStart(2, "0");
    return `${word}${sign}${hours}${padded || minutes % 60 !== 0 ? `:${rest}` : ""}`;
  }

  const listed = (list, key) => ` ${list} `.includes(` ${key} `);

  function longName(zone, key, state, generic) {
    const name = BY_ZONE[zone] ?? LONG[key];
    if (name === undefined) return undefined;
    if (name.endsWith("Time")) return name;
    const summer = name.endsWith("European") ? " Summer" : " Daylight";
    const season = generic ? "" : state.summer ? summer : " Standard";
    return `${name}${season} Time`;
  }

  /** The text that the option `timeZoneName` asks for. */
  function zoneText(zone, time, style, locale, word) {
    const state = zoneState(zone, time);
    const key = state.abbreviation + state.offset / 3600;
    const english = locale.name.startsWith("en");
    if (style === "shortOffset") return offsetText(state.offset, word, false);
    if (style === "longOffset") return offsetText(state.offset, word, true);
    const long = style === "long" || style === "longGeneric";
    if (long) {
      const name =
        english || zone === "UTC" ? longName(zone, key, state, style === "longGeneric") : undefined;
      return name ?? offsetText(state.offset, word, true);
    }
    if (zone === "UTC") return "UTC";
    const known = locale.name === "en-GB" ? EUROPEAN : english ? AMERICAN : "";
    if (!listed(known, key)) return offsetText(state.offset, word, false);
    const american = style === "shortGeneric" && /^([ECMP]|AK)[SD]T/.exec(key);
    return american ? `${american[1]}T` : state.abbreviation;
  }

  native.intl.canonicalZone = canonicalZone;
  native.intl.zoneState = zoneState;
  native.intl.zoneText = zoneText;
});
