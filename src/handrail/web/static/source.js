// Where the data comes from: this page's own server, or the page itself if it is an exported file.

const inside = document.getElementById("run-data");
export const exported = inside ? JSON.parse(inside.textContent) : null;

export async function api(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(`/api/${path}`, options);
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { status: answer.status });
  return answer.json();
}

// The token comes once, in the part of the address that browsers do not send, and leaves it at once.
export async function enter() {
  const [, token, rest] = location.hash.match(/^#token=([\w-]+)(.*)$/) || [];
  if (!token) return;
  history.replaceState(null, "", `#${rest || "/"}`);
  await api("enter", { token });
}

// Server-sent events of a run; the browser reconnects by itself and says which event it saw last.
export function follow(run, version, handlers) {
  const events = new EventSource(`/api/events?run=${encodeURIComponent(run)}&after=${encodeURIComponent(version)}`);
  for (const [name, handler] of Object.entries(handlers)) events.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  return () => events.close();
}

// What a change says about a run that is already here.
export function merge(run, change) {
  const places = {};
  for (const name of ["turns", "calls", "entries"]) {
    places[name] = Object.keys(change[name] || {}).map(Number);
    for (const place of places[name]) run[name][place] = change[name][place];
  }
  Object.assign(run, change.facts);
  return places;
}
