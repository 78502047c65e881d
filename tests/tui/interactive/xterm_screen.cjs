// A screen that wraps old lines anew when its width changes, as real terminals do. Commands and answers are JSON lines.
const { Terminal } = require(process.argv[2]);
const lines = require("readline").createInterface({ input: process.stdin });
let terminal = null;
let queue = Promise.resolve();

function dump() {
  const buffer = terminal.buffer.active;
  const rows = [];
  for (let at = 0; at < buffer.length; at++) {
    const line = buffer.getLine(at);
    const text = line.translateToString(true);
    if (line.isWrapped && rows.length) rows[rows.length - 1] += text;
    else rows.push(text);
  }
  console.log(JSON.stringify({ rows, type: buffer.type }));
}

function obey(order) {
  return new Promise((done) => {
    if (order.open) {
      const [cols, rows] = order.open;
      terminal = new Terminal({ cols, rows, scrollback: 50000, allowProposedApi: true });
    } else if (order.resize) terminal.resize(...order.resize);
    else if (order.data !== undefined) return terminal.write(Buffer.from(order.data, "base64"), done);
    else if (order.dump) dump();
    done();
  });
}

lines.on("line", (line) => {
  queue = queue.then(() => obey(JSON.parse(line)));
});
