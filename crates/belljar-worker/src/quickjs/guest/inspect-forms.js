// How each kind of value is printed: its brackets, its entries and its keys, as a "form" that
// inspect.js lays out. Offers `native.describe(value, inspection)`, and `native.printAs` to the
// files whose classes keep their state private.
(function (native) {
  "use strict";

  const { quoteNested } = native.layout;
  const kinds = native.kinds;
  const { prefixOf } = kinds;
  const { apply, getOwnPropertyDescriptor } = Reflect;
  const { keys, getOwnPropertyNames, getOwnPropertySymbols } = Object;
  const hasOwn = Object.hasOwn;
  const symbolToString = Symbol.prototype.toString;
  const dateToISOString = Date.prototype.toISOString;
  const regExpToString = RegExp.prototype.toString;

  // Beyond this length an array's indices are not listed only to find a property among them.
  const MAX_KEYED_LENGTH = 10_000;

  function plural(count, text, one = "", many = "s") {
    return `${count} ${text}${count === 1 ? one : many}`;
  }

  function primitive(value, indentation) {
    switch (typeof value) {
      case "string":
        return quoteNested(value, indentation);
      case "number":
        return Object.is(value, -0) ? "-0" : `${value}`;
      case "bigint":
        return `${value}n`;
      case "symbol":
        return apply(symbolToString, value, []);
      default:
        return `${value}`;
    }
  }

  /** Own keys to print, symbols last; a list's indices are not among them. */
  function keysOf(value, showHidden, length) {
    let names = [];
    if (length === undefined || length <= MAX_KEYED_LENGTH) {
      names = showHidden ? getOwnPropertyNames(value) : keys(value);
    }
    if (length !== undefined) {
      // Indices come first, in order, so the first other name ends them.
      let from = 0;
      while (from < names.length && `${names[from] >>> 0}` === names[from]) from += 1;
      names = names.slice(from);
    }
    const symbols = getOwnPropertySymbols(value);
    if (symbols.length === 0) return names;
    const visible = (symbol) => showHidden || getOwnPropertyDescriptor(value, symbol)?.enumerable;
    return names.concat(symbols.filter(visible));
  }

  function listLength(value, kind) {
    if (kind === "TypedArray") return kinds.typedArrayLength(value);
    if (kind === "String") return kinds.boxedValue(value, kind).length;
    return kind === "Array" ? value.length : undefined;
  }

  /** Parts for printing an object: `text` if that is all, or brackets, entries and keys. */
  function describe(value, inspection) {
    const kind = kinds.kindOf(value);
    const length = listLength(value, kind);
    const form = {
      kind,
      length,
      base: "",
      open: "{",
      close: "}",
      entries: undefined,
      text: undefined,
      constructor: kinds.constructorName(value),
      tag: kinds.tagOf(value, inspection.showHidden),
      keys: keysOf(value, inspection.showHidden, length),
    };
    (FORMS[kind] ?? objectForm)(form, value, inspection);
    return form;
  }

  /** `size` counts what is between the brackets beside the keys. */
  function bracketForm(form, prefix, [open, close], size, entries) {
    form.open = prefix + open;
    form.close = close;
    form.entries = entries;
    if (size === 0 && form.keys.length === 0) form.text = form.open + close;
  }

  /** Values printed as one word, followed by braces only when somebody hung properties on them. */
  function wordForm(form, text) {
    form.base = text;
    if (form.keys.length === 0) form.text = text;
  }

  function objectForm(form) {
    let prefix = "";
    if (form.constructor === null && form.tag === "Module") prefix = "[Module: null prototype] ";
    else if (form.constructor !== "Object" || form.tag !== "")
      prefix = prefixOf(form.constructor, form.tag, "Object");
    bracketForm(form, prefix, "{}", 0);
  }

  function sizedPrefix(form, fallback, size) {
    return prefixOf(form.constructor, form.tag, fallback, `(${size})`);
  }

  function namedWord(form, fallback, text) {
    const prefix = prefixOf(form.constructor, form.tag, fallback);
    wordForm(form, prefix === fallback + " " ? text : prefix + text);
  }

  function boxedForm(form, value) {
    const { kind, constructor, tag } = form;
    const name =
      constructor === null ? " (null prototype)" : kind === constructor ? "" : ` (${constructor})`;
    const shown = tag !== "" && tag !== constructor ? ` [${tag}]` : "";
    wordForm(form, `[${kind}${name}: ${primitive(kinds.boxedValue(value, kind), 0)}]${shown}`);
  }

  function bufferForm(form, value) {
    bracketForm(form, prefixOf(form.constructor, form.tag, form.kind), "{}", 1, (inspection) => {
      const bytes = new Uint8Array(value);
      const shown = Math.min(bytes.length, inspection.maxItems);
      let text = "";
      for (let i = 0; i < shown; i++)
        text += (i === 0 ? "" : " ") + bytes[i].toString(16).padStart(2, "0");
      if (bytes.length > shown) text += ` ... ${plural(bytes.length - shown, "more byte")}`;
      return [`[Uint8Contents]: <${text}>`, `byteLength: ${bytes.length}`];
    });
  }

  function unknownItems(form) {
    bracketForm(form, prefixOf(form.constructor, form.tag, form.kind), "{}", 1, () => [
      "<items unknown>",
    ]);
  }

  const FORMS = {
    Array(form, value) {
      const plain = form.constructor === "Array" && form.tag === "";
      bracketForm(
        form,
        plain ? "" : sizedPrefix(form, "Array", form.length),
        "[]",
        form.length,
        (inspection, level) => arrayEntries(value, form.length, inspection, level),
      );
    },
    Arguments(form) {
      bracketForm(form, "[Arguments] ", "{}", 0);
    },
    TypedArray(form, value) {
      // Node's buffers, see node/buffer.js.
      const word = native.bufferText?.(value);
      if (word !== undefined) return wordForm(form, word);
      const prefix = sizedPrefix(form, kinds.typedArrayName(value), form.length);
      bracketForm(form, prefix, "[]", form.length, (inspection) => {
        const entries = [];
        const shown = Math.min(form.length, inspection.maxItems);
        while (entries.length < shown)
          entries.push(inspection.spend(primitive(value[entries.length], 0)));
        return withMore(entries, form.length - shown);
      });
    },
    Set(form, value) {
      const size = kinds.setSize(value);
      bracketForm(form, sizedPrefix(form, "Set", size), "{}", size, (inspection, level) =>
        withMore(
          kinds.setItems(value, inspection.maxItems).map((item) => inspection.nested(item, level)),
          size - inspection.maxItems,
        ),
      );
    },
    Map(form, value) {
      const size = kinds.mapSize(value);
      bracketForm(form, sizedPrefix(form, "Map", size), "{}", size, (inspection, level) => {
        const pair = ([key, item]) =>
          `${inspection.nested(key, level)} => ${inspection.nested(item, level)}`;
        return withMore(
          kinds.mapItems(value, inspection.maxItems).map(pair),
          size - inspection.maxItems,
        );
      });
    },
    Function(form, value) {
      wordForm(form, kinds.functionLabel(value, form.constructor, form.tag));
    },
    Error(form, value, inspection) {
      errorKeys(form, value, inspection.showHidden);
      const indent = "\n" + " ".repeat(inspection.indentation);
      wordForm(form, kinds.errorText(value, form.constructor).replaceAll("\n", indent));
    },
    Date(form, value) {
      const time = kinds.boxedValue(value, "Date");
      namedWord(
        form,
        "Date",
        Number.isNaN(time) ? "Invalid Date" : apply(dateToISOString, value, []),
      );
    },
    RegExp(form, value) {
      namedWord(
        form,
        "RegExp",
        kinds.safely(() => apply(regExpToString, value, []), "/?/"),
      );
    },
    Promise(form, value) {
      bracketForm(
        form,
        prefixOf(form.constructor, form.tag, "Promise"),
        "{}",
        1,
        (inspection, level) => {
          const [state, settled] = native.promiseState(value);
          if (state === "pending") return ["<pending>"];
          const text = inspection.nested(settled, level);
          return [state === "rejected" ? "<rejected> " + text : text];
        },
      );
    },
    DataView(form, value) {
      bracketForm(
        form,
        prefixOf(form.constructor, form.tag, "DataView"),
        "{}",
        1,
        (inspection, level) => [
          `byteLength: ${value.byteLength}`,
          `byteOffset: ${value.byteOffset}`,
          `buffer: ${inspection.nested(value.buffer, level)}`,
        ],
      );
    },
    ArrayBuffer: bufferForm,
    SharedArrayBuffer: bufferForm,
    WeakMap: unknownItems,
    WeakSet: unknownItems,
    Number: boxedForm,
    String: boxedForm,
    Boolean: boxedForm,
    BigInt: boxedForm,
    Symbol: boxedForm,
  };

  /**
   * Teaches printing a class of this library whose state is private: `entries(value, show)` gives
   * the text of each entry, and throws for what is not of that class.
   */
  native.printAs = function printAs(type, entries) {
    kinds.register(type.prototype, type.name, (value) => entries(value, () => ""));
    FORMS[type.name] = (form, value) => {
      const texts = (inspection, level) => entries(value, (item) => inspection.nested(item, level));
      const size = entries(value, () => "").length;
      bracketForm(form, prefixOf(form.constructor, form.tag, type.name), "{}", size, texts);
    };
  };

  function withMore(entries, rest) {
    if (rest > 0) entries.push(`... ${plural(rest, "more item")}`);
    return entries;
  }

  /** The elements of an array, and its holes. */
  function arrayEntries(value, length, inspection, level) {
    const entries = [];
    let index = 0;
    let used = null;
    let at = 0;
    while (index < length && entries.length < inspection.maxItems && inspection.left > 0) {
      if (hasOwn(value, index)) {
        entries.push(arrayElement(value, index, inspection, level));
        index += 1;
        continue;
      }
      // After the first hole the indices in use are listed once: there may be few in a long array.
      used ??= indicesOf(value, length);
      while (at < used.length && used[at] < index) at += 1;
      const next = used[at] ?? length;
      entries.push(inspection.spend(`<${plural(next - index, "empty item")}>`));
      index = next;
    }
    return withMore(entries, length - index);
  }

  function indicesOf(value, length) {
    return keys(value)
      .filter((key) => `${key >>> 0}` === key && key < length)
      .map(Number);
  }

  function arrayElement(value, index, inspection, level) {
    const descriptor = getOwnPropertyDescriptor(value, index);
    if (descriptor.get === undefined && descriptor.set === undefined) {
      return inspection.nested(descriptor.value, level);
    }
    return descriptor.set === undefined
      ? "[Getter]"
      : descriptor.get === undefined
        ? "[Setter]"
        : "[Getter/Setter]";
  }

  /** Leaves out what the error's text says already, adds what it hides. */
  function errorKeys(form, error, showHidden) {
    const text = kinds.errorText(error, form.constructor);
    if (!showHidden) {
      form.keys = form.keys.filter((key) => {
        if (key !== "name" && key !== "message" && key !== "stack") return true;
        const value = getOwnPropertyDescriptor(error, key)?.value;
        return key !== "stack" && typeof value === "string" && !text.includes(value);
      });
    }
    for (const key of ["cause", "errors"]) {
      const own = getOwnPropertyDescriptor(error, key);
      if (own === undefined || form.keys.includes(key)) continue;
      if (key === "cause" || Array.isArray(own.value)) form.keys.push(key);
    }
  }

  native.describe = describe;
  native.plural = plural;
  native.primitive = primitive;
});
