// Sums over sessions: what `handrail stats` prints, as a page.
import { cards, columns as head, date, dollars, fill, h, kilo, number, plural, seconds } from "./dom.js";
import { frame } from "./frame.js";
import { api } from "./source.js";

const DAYS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["0", "All that is kept"]];
const COST = ["Cost", (row) => dollars(row.dollars), (row) => row.dollars];
const CALLS = ["Calls", (row) => number(row.calls)];
const SUMS = [["Sessions", (row) => number(row.sessions)], CALLS, COST];
const run = (id, text) => h("a", { href: `#/run/${encodeURIComponent(id)}` }, text);
const TABLES = [
  ["days", "Days", [["Day", (row) => row.day], ...SUMS]],
  ["tools", "Tools", [["Tool", (row) => row.tool], CALLS, ["Failed", (row) => number(row.failed)], ["Denied", (row) => number(row.denied)], ["Time", (row) => seconds(row.seconds), (row) => row.seconds], ["Slowest", (row) => seconds(row.slowest)]]],
  ["denials", "Denials by rule", [["Rule", (row) => row.rule], ["Tools", (row) => row.tools.join(", ")], ["Times", (row) => number(row.count), (row) => row.count]]],
  ["folders", "Folders", [["Folder", (row) => row.cwd], ...SUMS]],
  ["models", "Models", [["Model", (row) => row.model], ...SUMS]],
  ["slowest", "Slowest calls", [["Call", (row) => run(row.session, `${row.tool} ${row.subject}`)], ["When", (row) => date(row.at)], ["Time", (row) => seconds(row.seconds), (row) => row.seconds]]],
  ["sessions", "Sessions by cost", [["Session", (row) => run(row.session, row.session.slice(0, 8))], ["Turns", (row) => number(row.turns)], CALLS, COST]],
];

function bar(value, most) {
  return h("i", { class: "statbar", "aria-hidden": "true", style: { width: `${most > 0 ? (100 * value) / most : 0}%` } });
}

function table(title, columns, rows) {
  if (!rows.length) return null;
  const most = columns.map(([, , value]) => value && Math.max(...rows.map(value)));
  return h("section", { class: "stats" }, h("h2", null, title), h("table", null, head(columns.map(([name]) => name)),
    h("tbody", null, rows.map((row) => h("tr", null, columns.map(([, text, value], at) => h(at ? "td" : "th", !at && { scope: "row" }, text(row), value && bar(value(row), most[at]))))))));
}

export async function showStats() {
  const main = frame("Statistics");
  const days = h("select", { "aria-label": "Since when", onchange: () => load() }, DAYS.map(([value, text]) => h("option", { value, selected: value === "30" }, text)));
  const body = h("div", { role: "status" });
  const load = async () => {
    fill(body, h("p", { class: "empty" }, "Adding up"));
    const found = await api(`stats?days=${days.value}`), total = found.total;
    if (!total.sessions) return fill(body, h("p", { class: "empty" }, "There are no sessions of that time."));
    const share = total.cache_share === null ? "–" : `${Math.round(100 * total.cache_share)} %`;
    const sums = [["Cost", dollars(total.dollars)], ["Sessions", number(total.sessions)], ["Turns", number(total.turns)], ["Calls", number(total.calls)], ["Failed", number(total.failed)], ["Denied", number(total.denied)], ["Asked", number(total.asked)], ["No one to ask", number(total.unanswered)], ["From the cache", share], ["Tokens in", kilo(total.tokens.input)], ["Tokens out", kilo(total.tokens.output)]];
    const stages = Object.entries(found.stages).map(([stage, time]) => ({ stage, time }));
    fill(body, h("div", { class: "cards" }, cards(sums)),
      total.unpriced > 0 && h("p", { class: "dim" }, `${plural(total.unpriced, "answer")} without a known price`),
      found.problems.map((problem) => h("p", { class: "problem" }, problem)),
      table("Time by stage", [["Stage", (row) => row.stage], ["Time", (row) => seconds(row.time), (row) => row.time]], stages),
      TABLES.map(([name, title, columns]) => table(title, columns, found[name])));
  };
  fill(main, h("div", { class: "bar" }, h("h1", null, "Statistics"), days), body);
  await load();
  return () => {};
}
