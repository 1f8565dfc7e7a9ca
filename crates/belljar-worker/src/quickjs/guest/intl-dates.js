// How twelve locales write dates and times: names and patterns for intl-date.js, as text that is
// taken apart on first use, so that warming the engine costs next to nothing.
//
// In patterns: %y year, %Y its last two digits, %M %N month (padded), %B its name, %d %D day
// (padded), %A weekday, %h %H hour (padded), %i %I minute (padded), %s %S second (padded),
// %p AM or PM, %z time zone.
(function (native) {
  "use strict";

  /**
   * names: long months | short months | long weekdays | short weekdays | AM, PM
   * narrow: first letters of months, of weekdays. alone: short names outside a date, if different.
   * weekday: how a weekday joins a date {}. patterns: by fields, y n(umeric) s(hort) l(ong) d,
   * with e(short) or E(long) weekday; what is missing follows from `fallbacks` in intl-date.js.
   * times: 12 hours: h, hm, hms; 24 hours: H, Hm, Hms. styles: dateStyle full, long, medium, short.
   * joins: what stands between date and time for these four; then a lone weekday with a time {}.
   */
  const DATES = {
    en: {
      names:
        "January February March April May June July August September October November December|Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec|Sunday Monday Tuesday Wednesday Thursday Friday Saturday|Sun Mon Tue Wed Thu Fri Sat|AM,PM",
      narrow: "J F M A M J J A S O N D|S M T W T F S",
      hourCycle: "h12",
      weekday: "%A, {}",
      patterns: "yn=%M/%y|nd=%M/%d|ynd=%M/%d/%y|sd=%B %d|ys=%B %y|ysd=%B %d, %y|ed=%d %A",
      times: "h=%h\u202f%p|hm=%h:%I\u202f%p|hms=%h:%I:%S\u202f%p|H=%H|Hm=%H:%I|Hms=%H:%I:%S",
      styles: "%A, %B %d, %y|%B %d, %y|%B %d, %y|%M/%d/%Y",
      joins: " at | at |, |, |%A {}",
    },
    "en-GB": {
      names:
        "January February March April May June July August September October November December|Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec|Sunday Monday Tuesday Wednesday Thursday Friday Saturday|Sun Mon Tue Wed Thu Fri Sat|am,pm",
      hourCycle: "h23",
      weekday: "%A {}",
      patterns:
        "yn=%N/%y|nd=%D/%N|ynd=%D/%N/%y|sd=%d %B|ys=%B %y|ysd=%d %B %y|eynd=%A, %D/%N/%y|eysd=%A, %d %B %y|eyld=%A, %d %B %y",
      styles: "%A, %d %B %y|%d %B %y|%d %B %y|%D/%N/%y",
    },
    "en-CA": {
      names:
        "January February March April May June July August September October November December|Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec|Sunday Monday Tuesday Wednesday Thursday Friday Saturday|Sun Mon Tue Wed Thu Fri Sat|a.m.,p.m.",
      patterns: "yn=%y-%N|nd=%N-%D|ynd=%y-%N-%D|sd=%B %d|ys=%B %y|ysd=%B %d, %y|ed=%A %d",
      times: "h=%h %p|hm=%h:%I %p|hms=%h:%I:%S %p|H=%H|Hm=%H:%I|Hms=%H:%I:%S",
      styles: "%A, %B %d, %y|%B %d, %y|%B %d, %y|%y-%N-%D",
    },
    sv: {
      names:
        "januari februari mars april maj juni juli augusti september oktober november december|jan. feb. mars apr. maj juni juli aug. sep. okt. nov. dec.|söndag måndag tisdag onsdag torsdag fredag lördag|sön mån tis ons tors fre lör|fm,em",
      narrow: "J F M A M J J A S O N D|S M T O T F L",
      hourCycle: "h23",
      weekday: "%A {}",
      patterns: "yn=%y-%N|nd=%d/%M|ynd=%y-%N-%D|sd=%d %B|ys=%B %y|ysd=%d %B %y|eynd=%A, %y-%N-%D|ed=%A %d",
      times: "h=%h\u00a0%p|hm=%h:%I\u00a0%p|hms=%h:%I:%S\u00a0%p|H=%H|Hm=%H:%I|Hms=%H:%I:%S",
      styles: "%A %d %B %y|%d %B %y|%d %B %y|%y-%N-%D",
      joins: " kl. | kl. | | |%A {}",
    },
    de: {
      names:
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember|Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.|Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag|So. Mo. Di. Mi. Do. Fr. Sa.|AM,PM",
      alone: "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez|So Mo Di Mi Do Fr Sa",
      narrow: "J F M A M J J A S O N D|S M D M D F S",
      hourCycle: "h23",
      weekday: "%A, {}",
      patterns: "yn=%M/%y|nd=%d.%M.|ynd=%d.%M.%y|sd=%d. %B|ys=%B %y|ysd=%d. %B %y|ed=%A, %d.",
      times: "h=%h\u202f%p|hm=%h:%I\u202f%p|hms=%h:%I:%S\u202f%p|H=%H Uhr|Hm=%H:%I|Hms=%H:%I:%S",
      styles: "%A, %d. %B %y|%d. %B %y|%D.%N.%y|%D.%N.%Y",
      joins: " um | um |, |, |%A, {}",
    },
    fr: {
      names:
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre|janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.|dimanche lundi mardi mercredi jeudi vendredi samedi|dim. lun. mar. mer. jeu. ven. sam.|AM,PM",
      narrow: "J F M A M J J A S O N D|D L M M J V S",
      hourCycle: "h23",
      weekday: "%A {}",
      zone: "UTC",
      patterns: "yn=%N/%y|nd=%D/%N|ynd=%D/%N/%y|sd=%d %B|ys=%B %y|ysd=%d %B %y",
      times: "h=%h\u202f%p|hm=%h:%I\u202f%p|hms=%h:%I:%S\u202f%p|H=%H h|Hm=%H:%I|Hms=%H:%I:%S",
      styles: "%A %d %B %y|%d %B %y|%d %B %y|%D/%N/%y",
      joins: " à | à |, | |%A {}",
    },
    es: {
      names:
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre|ene feb mar abr may jun jul ago sept oct nov dic|domingo lunes martes miércoles jueves viernes sábado|dom lun mar mié jue vie sáb|a.\u202fm.,p.\u202fm.",
      narrow: "E F M A M J J A S O N D|D L M X J V S",
      hourCycle: "h23",
      weekday: "%A, {}",
      patterns:
        "yn=%M/%y|nd=%d/%M|ynd=%d/%M/%y|sd=%d %B|ld=%d de %B|ys=%B %y|yl=%B de %y|ysd=%d %B %y|yld=%d de %B de %y|ed=%A %d|Eysd=%A, %d de %B de %y",
      times: "h=%h\u202f%p|hm=%h:%I\u202f%p|hms=%h:%I:%S\u202f%p|H=%h|Hm=%h:%I|Hms=%h:%I:%S",
      fullTime: "%h:%I:%S (%z)",
      styles: "%A, %d de %B de %y|%d de %B de %y|%d %B %y|%d/%M/%Y",
      joins: ", | a las |, |, |%A, {}",
    },
    it: {
      names:
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre|gen feb mar apr mag giu lug ago set ott nov dic|domenica lunedì martedì mercoledì giovedì venerdì sabato|dom lun mar mer gio ven sab|AM,PM",
      narrow: "G F M A M G L A S O N D|D L M M G V S",
      hourCycle: "h23",
      weekday: "%A {}",
      patterns: "yn=%N/%y|nd=%D/%N|ynd=%D/%N/%y|sd=%d %B|ys=%B %y|ysd=%d %B %y",
      times: "h=%h\u202f%p|hm=%h:%I\u202f%p|hms=%h:%I:%S\u202f%p|H=%h|Hm=%H:%I|Hms=%H:%I:%S",
      styles: "%A %d %B %y|%d %B %y|%d %B %y|%D/%N/%Y",
      joins: " alle ore | alle ore |, |, |%A {}",
    },
    nl: {
      names:
        "januari februari maart april mei juni juli augustus september oktober november december|jan feb mrt apr mei jun jul aug sep okt nov dec|zondag maandag dinsdag woensdag donderdag vrijdag zaterdag|zo ma di wo do vr za|a.m.,p.m.",
      narrow: "J F M A M J J A S O N D|Z M D W D V Z",
      hourCycle: "h23",
      weekday: "%A {}",
      patterns: "yn=%M-%y|nd=%d-%M|ynd=%d-%M-%y|sd=%d %B|ys=%B %y|ysd=%d %B %y",
      times: "h=%h\u202f%p|hm=%h:%I %p|hms=%h:%I:%S %p|H=%H|Hm=%H:%I|Hms=%H:%I:%S",
      styles: "%A %d %B %y|%d %B %y|%d %B %y|%D-%N-%y",
      joins: " om | om |, |, |%A {}",
    },
    pt: {
      names:
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro|jan. fev. mar. abr. mai. jun. jul. ago. set. out. nov. dez.|domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado|dom. seg. ter. qua. qui. sex. sáb.|AM,PM",
      narrow: "J F M A M J J A S O N D|D S T Q Q S S",
      hourCycle: "h23",
      weekday: "%A, {}",
      patterns: "yn=%N/%y|nd=%D/%N|ynd=%D/%N/%y|sd=%d de %B|ys=%B de %y|ysd=%d de %B de %y",
      styles: "%A, %d de %B de %y|%d de %B de %y|%d de %B de %y|%D/%N/%y",
      joins: " às | às |, |, |%A, {}",
    },
    ja: {
      names:
        "1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月|1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月|日曜日 月曜日 火曜日 水曜日 木曜日 金曜日 土曜日|日 月 火 水 木 金 土|午前,午後",
      narrow: "1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月|日 月 火 水 木 金 土",
      hourCycle: "h23",
      weekday: "{}(%A)",
      patterns:
        "y=%y年|n=%M月|d=%d日|yn=%y/%M|nd=%M/%d|ynd=%y/%M/%d|sd=%M月%d日|ys=%y年%M月|ysd=%y年%M月%d日|Ed=%d日%A|End=%M/%d%A|Esd=%M月%d日%A|Eld=%M月%d日%A|Eynd=%y/%M/%d%A|Eysd=%y年%M月%d日%A|Eyld=%y年%M月%d日%A",
      times: "h=%p%h時|hm=%p%h:%I|hms=%p%h:%I:%S|H=%h時|Hm=%h:%I|Hms=%h:%I:%S",
      fullTime: "%h時%I分%S秒 %z",
      styles: "%y年%M月%d日%A|%y年%M月%d日|%y/%N/%D|%y/%N/%D",
      joins: " | | | |{} (%A)",
    },
    zh: {
      names:
        "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月|1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月|星期日 星期一 星期二 星期三 星期四 星期五 星期六|周日 周一 周二 周三 周四 周五 周六|上午,下午",
      narrow: "1 2 3 4 5 6 7 8 9 10 11 12|日 一 二 三 四 五 六",
      hourCycle: "h23",
      weekday: "{}%A",
      zoneFirst: true,
      patterns:
        "y=%y年|n=%M月|d=%d日|yn=%y/%M|nd=%M/%d|ynd=%y/%M/%d|sd=%M月%d日|ys=%y年%M月|ysd=%y年%M月%d日|Eynd=%y年%M月%d日%A",
      times: "h=%p%h时|hm=%p%h:%I|hms=%p%h:%I:%S|H=%h时|Hm=%H:%I|Hms=%H:%I:%S",
      styles: "%y年%M月%d日%A|%y年%M月%d日|%y年%M月%d日|%y/%M/%d",
      joins: " | | | |%A{}",
    },
  };

  const taken = new Map();
  const table = (text) => new Map(text.split("|").map((entry) => entry.split("=")));

  /** Date conventions of a locale, what it does not say taken from English. */
  native.intl.dateData = function dateData(name) {
    if (!taken.has(name)) {
      const raw = { ...DATES.en, alone: undefined, ...DATES[name] };
      const [long, short, days, shortDays, periods] = raw.names.split("|");
      const [narrow, narrowDays] = raw.narrow.split("|");
      const [alone = short, aloneDays = shortDays] = (raw.alone ?? "").split("|").filter(Boolean);
      const list = (text) => text.split(" ");
      taken.set(name, {
        ...raw,
        months: { long: list(long), short: list(short), narrow: list(narrow), alone: list(alone) },
        weekdays: {
          long: list(days),
          short: list(shortDays),
          narrow: list(narrowDays),
          alone: list(aloneDays),
        },
        periods: periods.split(","),
        patterns: table(raw.patterns),
        times: table(raw.times),
        styles: raw.styles.split("|"),
        joins: raw.joins.split("|"),
      });
    }
    return taken.get(name);
  };
});
