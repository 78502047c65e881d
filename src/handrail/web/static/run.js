// One run: a head with its sums, and the ways to look at it.
import { showQuestions } from "./ask.js";
import { callBody, decision, fold, long } from "./call.js";
import { changesView } from "./changes.js";
import { cards, date, dim, dollars, fill, h, kilo, options, plural, seconds, span, status, time } from "./dom.js";
import { frame, outcome } from "./frame.js";
import { VirtualList } from "./list.js";
import { api, exported, follow, merge } from "./source.js";
import { timelineView } from "./timeline.js";

const VIEWS = { conversation: "Conversation", timeline: "Timeline", decisions: "Decisions", changes: "Changes", cost: "Cost and cache", raw: "Raw records" };

export async function openRun(run, view, again) {
  const id = run.id, prefix = exported ? "#/run/" : `#/run/${encodeURIComponent(id)}/`;
  const names = Object.keys(VIEWS).filter((name) => !exported || (name !== "raw" && (name !== "changes" || run.diffs?.length)));
  if (!names.includes(view)) view = "conversation";
  const main = frame(run.title);
  const sums = h("div", { class: "sums" });
  const tabs = h("nav", { class: "tabs", "aria-label": "Ways to look at the run" }, names.map((name) => h("a", { href: prefix + name, "aria-current": name === view && "page" }, VIEWS[name])));
  const body = h("section", { class: "view", "aria-label": VIEWS[view] });
  const head = () => fill(sums, outcome(run.outcome), h("span", { title: run.cwd }, run.cwd), span(date(run.began)), span(seconds(run.totals.seconds)),
    span(plural(run.totals.turns, "turn")), span(plural(run.totals.calls, "call")),
    run.totals.denied > 0 && span(`${run.totals.denied} denied`), run.totals.failed > 0 && span(`${run.totals.failed} failed`),
    run.totals.dollars !== null && span(dollars(run.totals.dollars)), dim(run.model));
  head();
  const problem = run.problem ? h("p", { class: "problem" }, run.problem) : null;
  const note = run.left_out ? h("p", { class: "dim" }, run.left_out) : null;
  fill(main, h("h1", { class: "title" }, run.title || id), sums, problem, note, tabs, body);
  tabs.querySelector("[aria-current]").scrollIntoView({ inline: "center" });
  const shown = await { conversation, timeline: timelineView, decisions, changes: changesView, cost, raw }[view](run, body);
  if (exported) return () => shown.close?.();
  const stop = follow(id, run.version, {
    change: (change) => { run.version = change.version; const places = merge(run, change); head(); shown.update?.(places); },
    reset: again,
    questions: showQuestions,
    writing: (news) => shown.writing?.(news),
  });
  return () => { stop(); shown.close?.(); };
}

// Conversation

function entryRow(run, place) {
  const entry = run.entries[place], at = h("time", { class: "dim" }, time(entry.at));
  const body = () => long(run, "entry", place, entry.text, entry.size);
  switch (entry.kind) {
    case "prompt": return h("div", { class: "entry prompt" }, h("h2", null, "Prompt ", at), body());
    case "text": return h("div", { class: "entry answer" }, h("h2", null, "Model ", at), body());
    case "call": {
      const call = run.calls[entry.call];
      return h("div", { class: "entry call" }, fold(false, [status(call.status), " ", h("b", null, call.tool), " ", h("span", { class: "subject" }, call.subject), dim(` ${call.stages?.ran ? seconds(call.stages.ran) : ""}${call.early ? " · early" : ""}`)], () => callBody(run, entry.call)));
    }
    case "thinking": return h("div", { class: "entry dim" }, fold(false, ["Thinking ", at], body));
    case "ended": return h("div", { class: "entry mark" }, "Ended: ", outcome(entry.text));
    case "discarded": return h("div", { class: "entry mark" }, "The answer broke off and was asked for again.");
    case "compacted": return h("div", { class: "entry mark" }, fold(false, ["The conversation was shortened ", at], body));
    case "file": return h("div", { class: "entry dim" }, `[${entry.text}]`);
    default: return h("div", { class: "entry dim" }, fold(false, [entry.kind === "note" ? "Note " : "Added by handrail ", at], body));
  }
}

function conversation(run, body) {
  let agent = "main", places = [], names = "";
  const drafts = new Map(), over = new Set(); // what agents write now; what is over stays until the record has it
  const draftRow = () => h("div", { class: "entry answer" }, h("h2", null, "Model ", status("running", "writing")), h("pre", { class: "text" }, drafts.get(agent).slice(-4000)));
  const choose = h("select", { "aria-label": "Agent", onchange: () => { agent = choose.value; pick(); list.heights.length = 0; list.refresh(); } });
  const name = () => {
    const found = run.agents.map((a) => [a.id, a.id === "main" ? "Main agent" : `${a.type} ${a.description} (${a.id})`]);
    if (names === (names = String(found))) return;
    fill(choose, options(found)).value = agent;
    choose.hidden = found.length < 2;
  };
  const pick = () => { places = []; run.entries.forEach((entry, place) => entry.agent === agent && places.push(place)); };
  pick();
  const list = new VirtualList({ count: () => places.length + (drafts.has(agent) ? 1 : 0), row: (at) => (at < places.length ? entryRow(run, places[at]) : draftRow()), estimate: 52, label: "Conversation", follow: true });
  name();
  fill(body, choose, list.node);
  list.refresh();
  return {
    update: (changed) => {
      const before = places.length;
      for (const place of changed.entries) { const by = run.entries[place].agent; if (over.delete(by)) drafts.delete(by); }
      if (changed.entries.length) { pick(); name(); }
      if (places.length !== before) list.drop(before);
      const calls = new Set(changed.calls), seen = [];
      for (const [at] of list.drawn) if (calls.has(run.entries[places[at]]?.call)) seen.push(at);
      if (seen.length || places.length !== before) list.refresh(seen);
    },
    writing: (news) => {
      if (!news.text) over.add(news.agent);
      else { over.delete(news.agent); drafts.set(news.agent, (news.more ? drafts.get(news.agent) || "" : "") + news.text); }
      if (news.agent === agent) list.refresh([places.length]);
    },
    close: () => list.close(),
  };
}

// Decisions

function decisions(run, body) {
  const choose = h("select", { "aria-label": "Which decisions", onchange: () => pick() }, options([["", "All"], ["deny", "Denied"], ["asked", "Asked about"], ["allow", "Allowed"]]));
  let places = [];
  const fits = (d) => d && (!choose.value || (choose.value === "asked" ? d.asked : d.verdict === choose.value));
  const list = new VirtualList({ count: () => places.length, row: (at) => decisionRow(run, places[at]), estimate: 38, label: "Decisions" });
  const pick = (keep) => { places = []; run.calls.forEach((call, place) => fits(call.decision) && places.push(place)); if (!keep) list.heights.length = 0; list.refresh(keep && []); fill(none, places.length ? "" : "No decisions that fit were recorded."); };
  const none = h("p", { class: "empty", role: "status" });
  fill(body, choose, none, list.node);
  pick();
  return { update: (changed) => changed.calls.length && pick(true), close: () => list.close() };
}

function decisionRow(run, place) {
  const call = run.calls[place], d = call.decision;
  return h("div", { class: "entry call" }, fold(false, [status(d.verdict), " ", h("b", null, call.tool), " ", h("span", { class: "subject" }, call.subject), dim(` ${d.by}${d.rule ? ` · ${d.rule}` : ""}`)], () => [decision(call), h("h3", null, "The call"), callBody(run, place).firstChild]));
}

// Cost and cache

const PARTS = [["cache_read", "from the cache"], ["cache_write", "into the cache"], ["input", "input"], ["output", "output"]];

function cost(run, body) {
  const list = new VirtualList({ count: () => run.turns.length, row: (at) => turnRow(run, at), estimate: 44, label: "Turns" });
  const head = h("div", { class: "cards" });
  const sum = () => {
    const t = run.totals.tokens, asked = t.input + t.cache_read + t.cache_write;
    fill(head, cards([["Cost", dollars(run.totals.dollars)], ["From the cache", asked ? `${Math.round((100 * t.cache_read) / asked)} %` : "–"], ...PARTS.map(([name, label]) => [`Tokens ${label}`, kilo(t[name])]), ["Prefix broken", plural(run.turns.filter((turn) => turn.broke).length, "time")]]));
  };
  sum();
  fill(body, head, h("p", { class: "legend", "aria-hidden": "true" }, PARTS.map(([name, label]) => span(h("i", { class: `tokens ${name}` }), ` ${label} `))), list.node);
  list.refresh();
  return { update: (changed) => { if (changed.turns.length) { sum(); list.refresh(changed.turns); } }, close: () => list.close() };
}

function turnRow(run, place) {
  const turn = run.turns[place], usage = turn.usage;
  const most = Math.max(1, ...run.turns.map((each) => (each.usage ? PARTS.reduce((all, [name]) => all + each.usage[name], 0) : 0)));
  const text = usage ? PARTS.map(([name, label]) => `${kilo(usage[name])} ${label}`).join(", ") : "no tokens were recorded";
  return h("div", { class: "turn" },
    h("div", null, h("b", null, `${turn.agent === "main" ? "Turn" : turn.agent} ${turn.turn}`), dim(` ${turn.model} · ${seconds(turn.answered && turn.answered - turn.at)} · ${dollars(turn.dollars)} · ${text}`)),
    usage && h("div", { class: "tokenbar", "aria-hidden": "true" }, PARTS.map(([name]) => h("i", { class: `tokens ${name}`, style: { width: `${(100 * usage[name]) / most}%` } }))),
    turn.broke && h("div", { class: "broke" }, `Prefix broken: ${turn.broke}`), turn.discarded && h("div", { class: "broke" }, "The answer broke off and was asked for again."));
}

// Raw records

const PAGE = 100;

async function raw(run, body) {
  const pages = new Map();
  let count = 0;
  const load = async (page) => {
    pages.set(page, null);
    const found = await api(`run/${encodeURIComponent(run.id)}/raw?from=${page * PAGE}&count=${PAGE}`);
    pages.set(page, found.lines);
    count = found.total;
    list.refresh(found.lines.map((_, at) => page * PAGE + at));
  };
  const list = new VirtualList({ count: () => count, estimate: 34, label: "Records", row: (at) => {
    const page = Math.floor(at / PAGE);
    if (!pages.has(page)) load(page);
    const line = pages.get(page)?.[at % PAGE];
    return h("div", { class: "entry raw" }, line === undefined ? dim(`${at + 1} …`) : fold(false, [dim(`${at + 1} `), h("code", null, line.slice(0, 160))], () => { let text = line; try { text = JSON.stringify(JSON.parse(line), null, 2); } catch { /* it is cut, or broken */ } return h("pre", { class: "text" }, text); }));
  } });
  fill(body, list.node);
  await load(0);
  return { update: (changed) => changed.entries.length && load(Math.floor(count / PAGE)), close: () => list.close() };
}
