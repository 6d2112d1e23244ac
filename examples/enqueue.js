// Enqueues jobs from Node, by the command weir enqueue. See doc/producing.md.
const { execFileSync } = require("node:child_process");

function enqueue(type, args, ...flags) {
  return execFileSync("weir", ["enqueue", type, "-", ...flags], { input: JSON.stringify(args), encoding: "utf8" }).trim();
}

function enqueueMany(type, rows, batch, ...flags) {
  const input = rows.map((row) => JSON.stringify(row) + "\n").join("");
  execFileSync("weir", ["enqueue", "--from", "-", type, "--batch", batch, ...flags], { input });
}

enqueue("remind", { text: "pay" }, "--in", "2h", "--id", "invoice-8");
enqueue("sync", 7, "--unique", "account-7");
enqueueMany("mail", [{ to: "ann@example.com" }, { to: "bob@example.com" }], "week-48", "--then", "report");
