// Questions of running sessions. The first answer counts; a question that was answered elsewhere leaves the page.
import { fold, inputList } from "./call.js";
import { diff } from "./changes.js";
import { dim, fill, h } from "./dom.js";
import { api } from "./source.js";

const PATIENCE = 400; // clicks that were meant for something else do not answer
const boxes = new Map(); // what is typed into one stays when others come and go
let asked = [];

function answer(question, values, box) {
  const said = box.querySelector("[role=status]");
  fill(said, "Sending the answer");
  return api("answer", { session: question.session, question: question.id, digest: question.digest, ...values }).catch((error) => fill(said, error.message));
}

// A choice as a button; one that brings a text has a field for it, at once or when it is asked for.
function choiceRow(question, { value, label, detail, edit }, box) {
  const words = value === "deny", edits = value === "edit";
  const text = edit === null ? null : h(words ? "input" : "textarea", { value: edit, rows: 1 + Math.min(9, edit.split("\n").length), "aria-label": label, hidden: !words, placeholder: words && "What the model is told" });
  const open = () => { text.hidden = false; text.focus(); if (edits) fill(button, "Run the edited call"); };
  const send = () => answer(question, { choice: value, text: text?.value ?? "" }, box);
  const button = h("button", { class: value === "allow" && "main", onclick: () => (edits && text.hidden ? open() : send()) }, label);
  return h("div", { class: "bar" }, button, detail && dim(detail), value === "always" && h("button", { class: "quiet", onclick: open }, "Change the rule"), text);
}

function formOf(question, box) {
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); answer(question, { choice: "form", answers: filled(form, question.form) }, box); } },
    question.form.map((field, at) => h("fieldset", null, h("legend", null, [field.header, field.question].filter(Boolean).join(": ")),
      field.choices.map((each) => h("label", null, h("input", { type: field.several ? "checkbox" : "radio", name: `f${at}`, value: each.label }), ` ${each.label} `, dim(each.description), each.preview && h("pre", null, each.preview))),
      h("input", { type: "text", name: `o${at}`, "aria-label": "Another answer", placeholder: "Another answer" }))),
    h("div", { class: "bar" }, h("button", { class: "main" }, "Send"), h("button", { type: "button", onclick: () => answer(question, { choice: "deny" }, box) }, "Do not answer")));
  return form;
}

function filled(form, fields) {
  const answers = {};
  fields.forEach((field, at) => {
    const chosen = [...form.querySelectorAll(`[name=f${at}]:checked`)].map((each) => each.value), other = form.elements[`o${at}`].value.trim();
    if (other) chosen.push(other);
    if (chosen.length) answers[field.question] = field.several ? chosen : chosen[chosen.length - 1];
  });
  return answers;
}

function questionBox(question) {
  const box = h("section", { class: `question ${question.risk_level}`, "aria-label": question.title });
  const input = () => inputList(question.input);
  fill(box, h("h2", null, question.title), h("p", { class: "dim" }, h("a", { href: `#/run/${encodeURIComponent(question.session)}` }, "The run"), ` in ${question.cwd}`),
    question.document ? h("pre", { class: "text" }, question.document) : question.diff ? [h("p", null, h("code", null, question.summary)), diff(question.diff), fold(false, ["The whole input"], input)] : input(),
    h("p", null, h("b", null, "Risk: "), question.risk), h("p", null, h("b", null, "Why: "), question.reason),
    [...question.opinions, question.note].map((text) => text && h("p", { class: "dim" }, text)),
    question.form.length ? formOf(question, box) : question.choices.map((each) => choiceRow(question, each, box)), h("p", { role: "status" }));
  const buttons = box.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  setTimeout(() => { for (const button of buttons) button.disabled = false; }, PATIENCE);
  return box;
}

export function showQuestions(news) {
  asked = news?.questions ?? asked;
  const place = document.getElementById("questions"), wanted = new Map(asked.map((each) => [`${each.session} ${each.id} ${each.digest}`, each]));
  for (const [key, box] of boxes) if (!wanted.has(key)) { box.remove(); boxes.delete(key); }
  for (const [key, each] of wanted) {
    if (!boxes.has(key)) boxes.set(key, questionBox(each));
    if (!place.contains(boxes.get(key))) place.append(boxes.get(key));
  }
}
