// The frame of every view: the head of the page, its theme, and the place for questions.
import { showQuestions } from "./ask.js";
import { fill, h, status } from "./dom.js";
import { exported } from "./source.js";

const app = document.getElementById("app");
const THEMES = ["auto", "light", "dark"];
export const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };

export function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch { /* a page may not store anything */ }
}

function themeButton() {
  const button = h("button", { class: "quiet", onclick: () => turn() });
  const turn = () => { setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]); name(); };
  const name = () => fill(button, `Theme: ${document.documentElement.dataset.theme}`);
  name();
  return button;
}

export function frame(title, ...more) {
  document.title = title ? `${title} · handrail` : "handrail";
  const main = h("main", { id: "main", tabindex: "-1" });
  const home = exported ? h("span", { class: "brand" }, "handrail") : h("a", { class: "brand", href: "#/" }, "handrail");
  fill(app,
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the content"),
    h("header", { class: "top" }, home, !exported && h("a", { href: "#/stats" }, "Statistics"), ...more, h("span", { class: "gap" }), themeButton()),
    h("div", { id: "questions", "aria-live": "assertive" }), main);
  showQuestions();
  return main;
}

const OUTCOMES = { completed: ["ok", "completed"], "": ["unknown", "not known"], unfinished: ["running", "unfinished"] };
export const outcome = (word) => status(...(OUTCOMES[word] || ["error", word.replaceAll("_", " ")]));
