// What a page of another site could try. Each try must fail.
async ([ours, id]) => {
  const undo = `${ours}/api/run/${id}/undo`, body = '{"number":1}', credentials = "include";
  const json = { "content-type": "application/json" };
  const element = (tag, values) => new Promise((onload, onerror) => document.head.append(Object.assign(document.createElement(tag), values, { onload, onerror })));
  const tries = {
    read: () => fetch(`${ours}/api/sessions`, { credentials }),
    write: () => fetch(undo, { method: "POST", credentials, headers: json, body }),
    script: () => element("script", { src: `${ours}/api/sessions` }),
    events: () => new Promise((yes, no) => Object.assign(new EventSource(`${ours}/api/events`, { withCredentials: true }), { onopen: yes, onerror: no })),
  };
  const out = {};
  for (const [name, go] of Object.entries(tries)) out[name] = await go().then(() => "answered", () => "refused");
  // this one cannot be read, but it must not do anything either
  await fetch(undo, { method: "POST", mode: "no-cors", credentials, body }).catch(() => {});
  return out;
}
