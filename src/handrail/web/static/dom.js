// Elements and text. Everything that comes from a run becomes a text node here, never markup.

const SGR = /\u001b\[[0-9;:]*m/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const UNSEEN = /[\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

// The text as it may be shown: colours of terminals are dropped, what cannot be seen is named.
export function visible(text) {
  return String(text)
    .replace(SGR, "")
    .replace(CONTROL, (c) => (c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\u2421"))
    .replace(UNSEEN, (c) => `\u2039U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u203a`);
}

export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : visible(value));
  }
  return fill(node, ...children);
}

export function fill(node, ...children) {
  node.replaceChildren(...children.flat(9).filter((c) => c || c === 0).map((c) => (c instanceof Node ? c : visible(c))));
  return node;
}

export const span = (...text) => h("span", null, ...text);
export const dim = (...text) => h("span", { class: "dim" }, ...text);
export const cards = (pairs) => pairs.map(([label, value]) => h("div", null, dim(label), h("b", null, value)));
export const columns = (names) => h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name))));
export const row = (values) => h("tr", null, values.map((value) => h("td", null, value)));
export const options = (pairs) => pairs.map(([value, text]) => h("option", { value }, text));
export const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
export const number = (n) => (n ?? 0).toLocaleString("en");
export const dollars = (d) => (d == null ? "–" : d === 0 ? "$0" : d < 0.01 ? `$${d.toFixed(4)}` : `$${d.toFixed(2)}`);
export const kilo = (n) => (n >= 1e6 ? `${(n / 1e6).toFixed(1)}M` : n >= 1e4 ? `${Math.round(n / 1e3)}k` : number(n));

export function seconds(s) {
  if (s == null) return "–";
  if (s < 0.0995) return `${(s * 1000).toFixed(s < 0.00995 ? 1 : 0)} ms`;
  if (s < 59.95) return `${s.toFixed(s < 9.995 ? 2 : 1)} s`;
  const m = Math.floor(s / 60);
  return m < 60 ? `${m} min ${Math.round(s % 60)} s` : `${Math.floor(m / 60)} h ${m % 60} min`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { year: "numeric", month: "short", day: "numeric" });
export const time = (at) => (at ? clock.format(at * 1000) : "");
export const date = (at) => (at ? `${day.format(at * 1000)} ${clock.format(at * 1000).slice(0, 5)}` : "");
export const base = (path) => path.replace(/\/+$/, "").split("/").pop() || path;

const MARKS = { ok: "✓", allow: "✓", error: "✗", deny: "⊘", denied: "⊘", running: "●", ask: "?" };

// A status as a mark and a word: never by colour alone.
export function status(word, label = word) {
  return h("span", { class: `status ${word}` }, h("span", { "aria-hidden": "true" }, MARKS[word] || "○"), ` ${label}`);
}
