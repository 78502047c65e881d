// When everything happened: a row for each answer of the model and for each call, agents as lanes, and a scale to zoom.
import { callBody } from "./call.js";
import { dim, fill, h, seconds, span, status } from "./dom.js";
import { VirtualList } from "./list.js";

const LEGEND = [["model", "model streams"], ["queued", "queued"], ["decided", "checked"], ["waited", "waits for permission"], ["ran", "runs"]];

// The rows, lane after lane: an agent's head, its answers, and under each answer its calls.
function rowsOf(run) {
  const rows = [];
  for (const agent of run.agents) {
    if (run.agents.length > 1) rows.push({ agent });
    const calls = new Map();
    run.calls.forEach((call, place) => { if (call.agent === agent.id) (calls.get(call.turn) || calls.set(call.turn, []).get(call.turn)).push(place); });
    run.turns.forEach((turn, place) => {
      if (turn.agent !== agent.id) return;
      rows.push({ turn: place });
      for (const call of calls.get(place) || []) rows.push({ call });
    });
    for (const call of calls.get(null) || []) rows.push({ call });
  }
  return rows;
}

// The parts of a call on the clock. Its end is known; the stages before it are counted back from there.
function parts(call, now) {
  const end = call.ended ?? now;
  if (!call.stages) return [["queued", call.queued, call.started ?? end], call.started && ["ran", call.started, end]].filter(Boolean);
  const s = call.stages, begin = Math.max(call.queued, end - (s.queued + s.validated + s.decided + s.ran + s.fitted));
  const decided = begin + s.queued, waits = decided + s.validated + s.decided - s.waited, runs = waits + s.waited;
  return [["queued", begin, decided], ["decided", decided, waits], ["waited", waits, runs], ["ran", runs, runs + s.ran + s.fitted]].filter(([, from, to]) => to > from);
}

export function timelineView(run, body) {
  let rows = rowsOf(run), zoom = 1, origin = null, shownFrom = -1;
  const bounds = () => { const from = run.began || 0, to = Math.max(run.ended || 0, from + 0.001); return { from, span: (to - from) / zoom, to }; };
  const start = (row) => (row.call !== undefined ? run.calls[row.call].queued : row.turn !== undefined ? run.turns[row.turn].at : row.agent.began) || 0;
  const windowOf = () => { const { from, span, to } = bounds(); return { from: Math.max(from, Math.min(origin ?? from, to - span)), span }; };

  function bar(kind, from, to) {
    const view = windowOf(), left = (100 * (from - view.from)) / view.span, width = (100 * (to - from)) / view.span;
    if (left > 100 || left + width < 0) return null;
    const x = Math.max(0, left);
    return h("i", { class: `bar-${kind}`, style: { left: `${x}%`, width: `max(2px, ${Math.min(100, left + width) - x}%)` } });
  }

  function row(at) {
    const each = rows[at];
    if (each.agent) return h("div", { class: "lane" }, each.agent.id === "main" ? "Main agent" : `${each.agent.type}: ${each.agent.description || each.agent.id}`, dim(` ${each.agent.status}`));
    if (each.turn !== undefined) {
      const turn = run.turns[each.turn], end = turn.answered ?? turn.ended ?? run.ended;
      const label = `Model, turn ${turn.turn}, ${seconds(end - turn.at)}${turn.discarded ? ", broke off" : ""}`;
      return h("div", { class: "tl model", title: label }, h("button", { class: "name", "aria-label": label, onclick: () => tell(label, h("p", null, `First block after ${seconds(turn.first && turn.first - turn.at)}, whole answer after ${seconds(turn.answered && turn.answered - turn.at)}. ${turn.model}`)) }, `model · turn ${turn.turn}`), h("span", { class: "track", "aria-hidden": "true" }, bar("model", turn.at, end)));
    }
    const call = run.calls[each.call], all = parts(call, run.ended);
    const label = `${call.tool} ${call.subject}: ${call.status}${call.early ? ", early start" : ""}; ${all.map(([kind, from, to]) => `${kind} ${seconds(to - from)}`).join(", ")}`;
    return h("div", { class: `tl ${call.status}`, title: label }, h("button", { class: "name", "aria-label": label, onclick: () => tell([status(call.status), " ", h("b", null, call.tool), " ", call.subject, call.early && " · early start"], callBody(run, each.call)) }, h("b", null, call.tool), ` ${call.subject}`),
      h("span", { class: "track", "aria-hidden": "true" }, all.map(([kind, from, to]) => bar(kind, from, to)), call.early && bar("early", call.started, call.started)));
  }

  const told = h("div", { class: "told", role: "status" });
  const tell = (title, content) => fill(told, h("div", { class: "told-head" }, h("div", null, title), h("button", { class: "quiet", onclick: () => fill(told) }, "Close")), content);
  const list = new VirtualList({ count: () => rows.length, row, estimate: 26, label: "Timeline", onview: (first) => {
    if (zoom > 1 && first !== shownFrom && rows[first]) { shownFrom = first; const from = start(rows[first]); if (from) { origin = from - bounds().span * 0.05; redraw(); } }
  } });
  const scale = h("div", { class: "scale", "aria-hidden": "true" });
  const level = h("output", null);
  const redraw = () => {
    const view = windowOf(), offset = view.from - (run.began || 0);
    fill(scale, [0, 0.25, 0.5, 0.75, 1].map((share) => span(seconds(offset + view.span * share))));
    fill(level, zoom === 1 ? "whole run" : `${seconds(view.span)} in sight`);
    list.refresh();
  };
  const change = (by) => { zoom = Math.max(1, Math.min(1e6, zoom * by)); if (zoom === 1) origin = null; shownFrom = -1; redraw(); };
  const move = (by) => { const view = windowOf(); origin = view.from + by * view.span; redraw(); };
  list.node.addEventListener("wheel", (event) => { if (event.ctrlKey || event.metaKey) { event.preventDefault(); change(event.deltaY < 0 ? 1.25 : 0.8); } else if (event.shiftKey) { event.preventDefault(); move(Math.sign(event.deltaY) * 0.1); } }, { passive: false });
  list.node.addEventListener("keydown", (event) => {
    const act = { "+": () => change(2), "=": () => change(2), "-": () => change(0.5), 0: () => change(0), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2) }[event.key];
    if (act && !event.ctrlKey && !event.metaKey) { event.preventDefault(); act(); }
  });
  fill(body,
    h("div", { class: "bar" }, [["Zoom in", "+", change, 2], ["Zoom out", "−", change, 0.5], ["Whole run", "Whole run", change, 0], ["Earlier", "←", move, -0.5], ["Later", "→", move, 0.5]].map(([label, sign, act, by]) => h("button", { onclick: () => act(by), "aria-label": label }, sign)), level),
    h("p", { class: "legend" }, LEGEND.map(([kind, text]) => span(h("i", { class: `bar-${kind}` }), ` ${text} `)), span(h("i", { class: "bar-early" }), " started early")),
    told, scale, list.node);
  redraw();
  return { update: (changed) => { if (changed.turns.length || changed.calls.length) { rows = rowsOf(run); redraw(); } }, close: () => list.close() };
}
