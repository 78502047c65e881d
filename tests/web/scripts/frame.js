// Whether our page can be put into a frame: what a browser refuses to show has an origin that is nobody's.
(ours) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.onload = () => done(frame.contentWindow.length === 0 ? "refused" : "shown");
  frame.src = ours;
  document.body.append(frame);
})
