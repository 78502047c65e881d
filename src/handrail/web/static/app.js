// The page: the list of sessions, and one run at a time.
import { showQuestions } from "./ask.js";
import { base, date, dim, dollars, fill, h, kilo, options, plural, span, status } from "./dom.js";
import { frame, outcome, setTheme, stored } from "./frame.js";
import { VirtualList } from "./list.js";
import { openRun } from "./run.js";
import { showStats } from "./stats.js";
import { api, enter, exported, follow } from "./source.js";

let leave = () => {};
let held = null; // the run that is open, so that its views need not load it again

async function showSessions() {
  const main = frame("Sessions");
  const found = await api("sessions");
  let rows = found.sessions;
  const search = h("input", { type: "search", placeholder: "Search title, folder, model, id", "aria-label": "Search sessions", oninput: () => narrow() });
  const folder = h("select", { "aria-label": "Folder", onchange: () => narrow() }, options([["", "All folders"], ...[...new Set(found.sessions.map((s) => s.cwd))].sort().map((cwd) => [cwd, cwd])]));
  const sums = h("p", { class: "sums", role: "status" });
  const none = h("p", { class: "empty" }, "There are no sessions yet. Every run of handrail leaves one.");
  const list = new VirtualList({ count: () => rows.length, row: (place) => sessionRow(rows[place]), estimate: 64, label: "Sessions" });
  const narrow = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows = found.sessions.filter((s) => (!folder.value || s.cwd === folder.value) && words.every((w) => `${s.title} ${s.cwd} ${s.model} ${s.id}`.toLowerCase().includes(w)));
    const cost = rows.reduce((sum, s) => sum + (s.dollars || 0), 0);
    fill(sums, plural(rows.length, "session"), cost ? ` · ${dollars(cost)}` : "");
    none.hidden = found.sessions.length > 0;
    list.heights.length = 0;
    list.refresh();
  };
  fill(main, h("div", { class: "bar" }, h("h1", null, "Sessions"), search, folder), sums, none, list.node);
  narrow();
  search.focus();
  const stop = follow("", "", { sessions: (news) => { found.sessions = news.sessions; narrow(); }, questions: showQuestions });
  return () => { stop(); list.close(); };
}

function sessionRow(s) {
  return h("div", { class: "session" },
    h("a", { href: `#/run/${encodeURIComponent(s.id)}` }, s.title || "(no prompt)"),
    h("div", { class: "facts" },
      s.live ? status("running", "live") : outcome(s.outcome),
      h("span", { title: s.cwd }, base(s.cwd)), span(date(s.updated)),
      s.answers !== null && span(plural(s.answers, "turn")), span(dollars(s.dollars)),
      dim(s.model), dim(`${kilo(Math.ceil(s.size / 1000))} kB`), h("code", { class: "dim" }, s.id.slice(0, 8))));
}

async function route() {
  leave();
  leave = () => {};
  try {
    const [, kind, id, view] = location.hash.split("/").map((part) => decodeURIComponent(part));
    if (exported) leave = await openRun(exported, id || "conversation");
    else if (kind === "run") {
      if (held?.id !== id) held = await api(`run/${encodeURIComponent(id)}`);
      leave = await openRun(held, view || "conversation", () => { held = null; route(); });
    } else leave = await (kind === "stats" ? showStats() : showSessions());
  } catch (error) {
    const main = frame("Problem");
    fill(main, h("p", { class: "empty", role: "alert" }, error.status === 401 ? "This page needs the address that `handrail view` printed: it holds the key." : error.message));
  }
}

setTheme(stored("theme") || "auto");
window.addEventListener("hashchange", route);
(exported ? Promise.resolve() : enter()).catch(() => {}).then(route);
