// Questions of running sessions. The first answer counts; a question that was answered elsewhere leaves the page.
import { fill, h } from "./dom.js";
import { api } from "./source.js";

const PATIENCE = 400; // clicks that were meant for something else do not answer
let last = { questions: [], names: "" };
let drawn = "";

function answer(question, values, box) {
  const said = box.querySelector("[role=status]");
  fill(said, "Sending the answer");
  return api("answer", { session: question.session, question: question.id, digest: question.digest, ...values }).catch((error) => fill(said, error.message));
}

function choices(question, box) {
  const words = h("input", { type: "text", placeholder: "What to do instead (optional)", "aria-label": "What the model is told with a no" });
  const send = (choice, more) => () => answer(question, { choice, text: words.value, ...more }, box);
  if (question.form.length) {
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); answer(question, { choice: "form", answers: filled(form, question.form) }, box); } },
      question.form.map((field, at) => h("fieldset", null, h("legend", null, field.question), field.choices.map((choice) => h("label", null, h("input", { type: field.several ? "checkbox" : "radio", name: `f${at}`, value: choice.label }), ` ${choice.label}`, choice.description && h("span", { class: "dim" }, ` ${choice.description}`))), h("input", { type: "text", name: `o${at}`, "aria-label": "Another answer", placeholder: "Another answer" }))),
      h("div", { class: "bar" }, h("button", { class: "main" }, "Send"), h("button", { type: "button", onclick: send("deny") }, "Do not answer")));
    return form;
  }
  return h("div", { class: "bar" }, h("button", { class: "main", onclick: send("allow") }, "Allow once"), question.always && h("button", { onclick: send("always"), title: question.always }, "Always allow"), h("button", { onclick: send("deny") }, "Deny"), words);
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
  fill(box, h("h2", null, question.title), h("p", { class: "dim" }, `${question.session_title || question.session} · ${question.cwd}`),
    question.document && h("pre", { class: "text" }, question.document),
    h("dl", { class: "input" }, Object.entries(question.input).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, h("pre", null, typeof value === "string" ? value : JSON.stringify(value, null, 1)))))),
    h("p", null, h("b", null, "Why: "), question.reason, question.risk && [" ", h("b", null, "Risk: "), question.risk]), question.note && h("p", null, question.note),
    question.always && h("p", { class: "dim" }, `Always would add: ${question.always}`),
    choices(question, box), h("p", { role: "status" }));
  const buttons = box.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  setTimeout(() => { for (const button of buttons) button.disabled = false; }, PATIENCE);
  return box;
}

export function showQuestions(news) {
  if (news) last = news;
  const place = document.getElementById("questions");
  if (!place) return;
  const state = JSON.stringify(last.questions.map((q) => [q.session, q.digest, q.note]));
  if (place.childElementCount && state === drawn) return;
  drawn = state;
  fill(place, last.questions.map(questionBox));
}
