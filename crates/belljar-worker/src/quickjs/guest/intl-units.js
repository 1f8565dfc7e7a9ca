// Names of currencies and units, in English only: other locales print the English symbols with
// their own digits. Adds `currency` and `unit` to `native.intl`.
(function (native) {
  "use strict";

  // Currencies whose amounts are not printed with two decimals.
  const DIGITS = {
    0: "BIF CLP COP DJF GNF HUF IDR ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
  };
  const NARROW =
    "USD=$ GBP=£ JPY=¥ INR=₹ KRW=₩ BRL=R$ ILS=₪ VND=₫ PHP=₱ CNY=¥ CAD=$ AUD=$ NZD=$ MXN=$ SEK=kr NOK=kr DKK=kr ISK=kr PLN=zł CZK=Kč HUF=Ft RUB=₽ TRY=₺ UAH=₴ ZAR=R SGD=$ HKD=$ TWD=$ THB=฿ IDR=Rp MYR=RM ARS=$ CLP=$ COP=$ XCD=$ NGN=₦ EGP=E£ RON=lei";
  // One and many, where many is not one with an s.
  const CURRENCY_NAMES =
    "USD=US dollar|EUR=euro|GBP=British pound|JPY=Japanese yen,Japanese yen|CNY=Chinese yuan,Chinese yuan|INR=Indian rupee|KRW=South Korean won,South Korean won|BRL=Brazilian real|CAD=Canadian dollar|AUD=Australian dollar|NZD=New Zealand dollar|MXN=Mexican peso|CHF=Swiss franc|SEK=Swedish krona,Swedish kronor|NOK=Norwegian krone,Norwegian kroner|DKK=Danish krone,Danish kroner|PLN=Polish zloty|CZK=Czech koruna|HUF=Hungarian forint|RUB=Russian ruble|TRY=Turkish lira,Turkish Lira|UAH=Ukrainian hryvnia|ILS=Israeli new shekel|ZAR=South African rand,South African rand|SGD=Singapore dollar|HKD=Hong Kong dollar|TWD=New Taiwan dollar|THB=Thai baht,Thai baht|VND=Vietnamese dong,Vietnamese dong|PHP=Philippine peso|IDR=Indonesian rupiah|MYR=Malaysian ringgit|AED=UAE dirham|SAR=Saudi riyal|ARS=Argentine peso|CLP=Chilean peso|COP=Colombian peso|PEN=Peruvian sol,Peruvian soles|XAF=Central African CFA franc|XOF=West African CFA franc|XPF=CFP franc|XCD=East Caribbean dollar|NGN=Nigerian naira|EGP=Egyptian pound|RON=Romanian leu,Romanian lei|ISK=Icelandic króna,Icelandic krónur|KWD=Kuwaiti dinar|BHD=Bahraini dinar";

  /**
   * unit=short,narrow,one,many. A leading space separates the text from the number; left out:
   * narrow is the short one without its space, one is the unit's name, many is one with an s.
   */
  const UNITS =
    "acre= ac|bit= bit|byte= byte,B|celsius=°C,,degree Celsius,degrees Celsius|centimeter= cm|day= day/ days,d|degree= deg,°|fahrenheit=°F,°,degree Fahrenheit,degrees Fahrenheit|fluid-ounce= fl oz,,fluid ounce|foot= ft,′,,feet|gallon= gal|gigabit= Gb|gigabyte= GB|gram= g|hectare= ha|hour= hr,h|inch= in,″,,inches|kilobit= kb|kilobyte= kB|kilogram= kg|kilometer= km|liter= L|megabit= Mb|megabyte= MB|meter= m|microsecond= μs|mile= mi|mile-scandinavian= smi,,,miles-scandinavian|milliliter= mL|millimeter= mm|millisecond= ms|minute= min,m|month= mth/ mths,m|nanosecond= ns|ounce= oz|percent=%,,,percent|petabyte= PB|pound= lb,#|second= sec,s|stone= st|terabit= Tb|terabyte= TB|week= wk/ wks,w|yard= yd|year= yr/ yrs,y";
  const PER = { second: "s", minute: "min", hour: "h", day: "d", week: "w", month: "m", year: "y" };
  const JOINED = { "mile-per-hour": "mph", "mile-per-gallon": "mpg" };

  const lazy = (make) => {
    let made;
    return () => (made ??= make());
  };
  const entries = (text, separator) =>
    new Map(
      text.split(separator).map((entry) => {
        const at = entry.indexOf("=");
        return [entry.slice(0, at), entry.slice(at + 1)];
      }),
    );
  const narrowSymbols = lazy(() => entries(NARROW, " "));
  const currencyNames = lazy(() => entries(CURRENCY_NAMES, "|"));
  const units = lazy(() => entries(UNITS, "|"));

  function currencyDigits(code) {
    for (const digits of Object.keys(DIGITS))
      if (DIGITS[digits].includes(code)) return Number(digits);
    return 2;
  }

  /** What is printed for a currency; undefined when it has no name here. */
  function currencyText(code, display, symbols, plural) {
    if (display === "code") return code;
    if (display === "narrowSymbol") return narrowSymbols().get(code) ?? symbols.get(code) ?? code;
    if (display === "symbol") return symbols.get(code) ?? code;
    const names = currencyNames().get(code);
    if (names === undefined) return code;
    const [one, many = `${one}s`] = names.split(",");
    return plural === "one" ? one : many;
  }

  function known(unit) {
    const [base, per, ...more] = unit.split("-per-");
    const has = (name) => name === undefined || units().has(name);
    return more.length === 0 && has(base) && has(per);
  }

  function simpleUnit(unit, display, plural) {
    const [short, narrow, one, many] = units().get(unit).split(",");
    if (display === "long") {
      const single = one || unit;
      return " " + (plural === "one" ? single : many || `${single}s`);
    }
    if (display === "narrow") return narrow || short.split("/")[0].trim();
    const [single, several = single] = short.split("/");
    return plural === "one" ? single : several;
  }

  /** The text behind the number, with the space that separates them. */
  function unitText(unit, display, plural) {
    const [base, per] = unit.split("-per-");
    if (per === undefined) return simpleUnit(base, display, plural);
    if (display === "long") {
      return `${simpleUnit(base, display, plural)} per${simpleUnit(per, display, "one")}`;
    }
    if (JOINED[unit] !== undefined) return (display === "narrow" ? "" : " ") + JOINED[unit];
    return `${simpleUnit(base, display, plural)}/${PER[per] ?? simpleUnit(per, "short", "one").trim()}`;
  }

  native.intl.currencyDigits = currencyDigits;
  native.intl.currencyText = currencyText;
  native.intl.knownUnit = known;
  native.intl.unitText = unitText;
});
