// What the run changed in files: a diff for each, and the way back.
import { columns, fill, h, plural, row, span, time } from "./dom.js";
import { api, exported } from "./source.js";

const MAX_LINES = 2000;

export function diff(text) {
  const lines = text.split("\n"), box = h("pre", { class: "diff" });
  for (const line of lines.slice(0, MAX_LINES)) box.append(h("span", { class: line[0] === "+" ? "added" : line[0] === "-" ? "removed" : line.startsWith("@@") ? "place" : null }, line || " "));
  if (lines.length > MAX_LINES) box.append(span(`and ${lines.length - MAX_LINES} more lines`));
  return box;
}

export async function changesView(run, body) {
  const path = `run/${encodeURIComponent(run.id)}`, closed = new Set();
  let soon = 0;
  async function show(said) {
    const { diffs, changes } = exported ? { diffs: run.diffs, changes: run.changes } : await api(`${path}/diffs`);
    const note = h("p", { role: "status" }, said);
    if (!diffs.length) return fill(body, note, h("p", { class: "empty" }, "No file was changed, as far as the undo journal knows."));
    const undo = (number, what) => !exported && h("button", { onclick: () => ask(number, what) }, "Undo from here");
    fill(body, note, diffs.map((file) => h("details", { class: "file", open: diffs.length < 12 && !closed.has(file.path), ontoggle: (event) => closed[event.target.open ? "delete" : "add"](file.path) }, h("summary", null, h("code", null, file.path), ` ${file.kind} `, h("span", { class: "added" }, `+${file.added}`), " ", h("span", { class: "removed" }, `−${file.removed}`)), file.note ? h("p", { class: "dim" }, file.note) : diff(file.diff))),
      h("h2", null, "Change by change"),
      h("table", null, columns(["#", "When", "Tool", "What", "File", ""]), h("tbody", null, changes.map((c) => row([c.number, time(c.at), c.tool, c.undone ? `${c.kind}, undone` : c.kind, h("code", null, c.path), !c.undone && undo(c.number, changes.filter((each) => each.number >= c.number && !each.undone))])))));
  }
  function ask(number, later) {
    const files = [...new Set(later.map((c) => c.path))];
    const dialog = h("dialog", { "aria-labelledby": "undo-title" }, h("h2", { id: "undo-title" }, `Go back to before change ${number}?`), h("p", null, `${plural(files.length, "file")} will hold what they held before it. The undo is recorded and can be undone.`), h("ul", null, files.slice(0, 50).map((file) => h("li", null, h("code", null, file)))),
      h("div", { class: "bar" }, h("button", { class: "main", onclick: () => act(false) }, "Undo"), h("button", { autofocus: true, onclick: () => dialog.close() }, "Keep the files")));
    const act = async (force) => {
      dialog.close();
      try {
        const done = await api(`${path}/undo`, { number, force });
        await show(`${plural(done.restored.length + done.removed.length, "file")} changed back to before change ${number}.`);
      } catch (error) { await show(`Nothing was undone. ${error.message}`); }
    };
    dialog.addEventListener("close", () => dialog.remove());
    body.append(dialog);
    dialog.showModal();
  }
  await show("");
  const again = () => { soon = 0; if (!body.querySelector("dialog")) show(""); };
  return { update: (changed) => { if (changed.calls.length) soon ||= setTimeout(again, 1000); }, close: () => clearTimeout(soon) };
}
