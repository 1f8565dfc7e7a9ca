// The nearest of a locale's patterns to the fields that a program asks for, where none is listed for
// just these: a part of intl-skeleton.js that few programs need. Adds `searchPattern` to `native.intl`.
(function (native) {
  "use strict";

  const { skeletonOf, fieldRow } = native.intl;

  const [EXTRA, MISSING] = [0x10000, 0x1000];
  const PERIOD = 10;

  const hasSameTypes = (a, b) => a.types.every((type, field) => type === b.types[field]);

  /** The base of a skeleton decides which listed pattern replaces which: lengths do not count. */
  function baseOf({ letters, lengths, types }) {
    let base = "";
    types.forEach((type, field) => {
      if (type === 0) return;
      if (field === PERIOD && letters[field] === "a" && lengths[field] === 1) return;
      base += letters[field].repeat(fieldRow(letters[field], lengths[field])[2]);
    });
    return base;
  }

  /** Candidates in the order of ICU, in which the first of those equally near is taken. */
  function candidatesOf(data) {
    const byBase = new Map();
    const add = (pattern, listed) => {
      const skeleton = skeletonOf(listed ?? pattern);
      const base = baseOf(skeleton);
      const list = byBase.get(base) ?? [];
      const twin = list.find((other) => hasSameTypes(other.skeleton, skeleton));
      if (listed === undefined && list.length > 0) return;
      if (twin !== undefined && twin.listed) return;
      if (twin !== undefined) Object.assign(twin, { pattern, skeleton, listed: listed !== undefined });
      else byBase.set(base, [...list, { pattern, skeleton, listed: listed !== undefined }]);
    };
    for (const letter of "GyQMwWEDFdaHmsSv") add(letter);
    for (let style = 0; style < 4; style++) {
      add(data.date[style]);
      add(data.time[style]);
    }
    for (const key of Object.keys(data.formats)) add(data.formats[key], key);
    const order = [...byBase.keys()].map((base, at) => [base.charCodeAt(0), at, base]);
    order.sort(([a, first], [b, second]) => a - b || first - second);
    return order.flatMap(([, , base]) => byBase.get(base));
  }

  /** How far a candidate is from what is wanted of some fields, and which of them it lacks. */
  function distance(wanted, candidate, fields) {
    let sum = 0;
    const missing = [];
    let hasExtra = false;
    for (let field = 0; field < wanted.types.length; field++) {
      const own = fields.has(field) ? wanted.types[field] : 0;
      const other = candidate.skeleton.types[field];
      if (own === other) continue;
      if (own === 0) {
        sum += EXTRA;
        hasExtra = true;
      } else if (other === 0) {
        sum += MISSING;
        missing.push(field);
      } else sum += Math.abs(own - other);
    }
    return { sum, missing, hasExtra };
  }

  const lack = ({ missing }) => missing.reduce((mask, field) => mask + 2 ** field, 0);

  native.intl.searchPattern = function searchPattern(wanted, data, fields) {
    data.candidates ??= candidatesOf(data);
    let best;
    for (const candidate of data.candidates) {
      const found = distance(wanted, candidate, fields);
      // Of two that are equally near, the one that lacks the smaller field.
      const isNearer =
        best === undefined ||
        found.sum < best.sum ||
        (found.sum === best.sum && lack(found) > lack(best));
      if (isNearer) best = { ...found, candidate };
      if (found.sum === 0) break;
    }
    return best;
  };
});
