// One call: its input, its result, its stages, and who decided it by which rule.
import { columns, fill, h, number, row, seconds, status } from "./dom.js";
import { api, exported } from "./source.js";

const whole = (run, kind, place) => api(`run/${encodeURIComponent(run.id)}/${kind}/${place}`);

// A text with the rest of it behind a button, if the page has only the beginning.
export function long(run, kind, place, text, size, part = "text") {
  const box = h("pre", { class: "text" }, text);
  if (size <= text.length) return box;
  const more = `${number(size - text.length)} more characters`;
  if (exported) return [box, h("p", { class: "dim" }, more)];
  const button = h("button", { class: "quiet", onclick: async () => { fill(box, (await whole(run, kind, place))[part]); button.remove(); } }, `Show ${more}`);
  return [box, button];
}

export function fold(open, summary, body) {
  const details = h("details", null, h("summary", null, ...summary));
  const show = () => details.open && details.childElementCount === 1 && details.append(h("div", { class: "inside" }, body()));
  details.addEventListener("toggle", show);
  details.open = open;
  show();
  return details;
}

function stages(call) {
  if (!call.stages) return null;
  const { waited, ...rest } = call.stages;
  return h("dl", { class: "stages" }, Object.entries(rest).map(([name, spent]) => h("div", null, h("dt", null, name), h("dd", null, seconds(spent), name === "decided" && waited > 0 ? ` (${seconds(waited)} waiting for an answer)` : ""))));
}

export function inputList(input) {
  return h("dl", { class: "input" }, Object.entries(input).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, h("pre", null, typeof value === "string" ? value : JSON.stringify(value, null, 1))))));
}

export function callBody(run, place) {
  const call = run.calls[place];
  return h("div", null, inputList(call.input),
    call.result && [h("h3", null, "Result"), long(run, "call", place, call.result, call.size, "result")],
    call.stages && h("h3", null, "Stages"), stages(call),
    call.decision && [h("h3", null, "Decision"), decision(call)]);
}

export function decision(call) {
  const d = call.decision;
  return h("div", { class: "decision" },
    h("p", null, status(d.verdict), ` by ${d.by}`, d.asked && ", after a question", d.waiting > 0.0005 && ` that took ${seconds(d.waiting)}`, ": ", d.reason, "."),
    d.rule && h("p", null, "Rule: ", h("code", null, d.rule)),
    h("table", null, columns(["Layer", "Says", "Strength", "Why", "Written in"]),
      h("tbody", null, d.opinions.map((o) => row([o.layer, status(o.says), o.strength.replaceAll("_", " "), o.reason, o.rule && h("code", null, o.rule)])))),
    d.remedy.length > 0 && h("p", null, "What would have allowed it: ", d.remedy.map((text) => h("code", null, text))),
    !d.remedy.length && d.verdict === "deny" && h("p", null, "What would have allowed it: ", d.rule ? "only a change of that rule." : "no rule that handrail knows of."),
    d.learned.length > 0 && h("p", null, "Allowed from then on: ", d.learned.map((text) => h("code", null, text))));
}
